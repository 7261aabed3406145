package main

import "fmt"

// Version of this pintle. A supervisor of an older one is asked to leave.
const Version = "0.1.0"

// versionVerb is `pintle version`.
type versionVerb struct{ output }

// Run prints the version.
func (v *versionVerb) Run(a *app) error {
	if v.JSON {
		a.print(map[string]string{"version": Version})
		return nil
	}
	fmt.Fprintln(a.stdout, "pintle "+Version)
	return nil
}

// older reports whether version a comes before b; what is not three numbers comes first.
func older(a, b string) bool {
	x, y := numbers(a), numbers(b)
	for i := range x {
		if x[i] != y[i] {
			return x[i] < y[i]
		}
	}
	return false
}

func numbers(v string) (n [3]int) {
	_, _ = fmt.Sscanf(v, "%d.%d.%d", &n[0], &n[1], &n[2])
	return n
}
