//go:build race

package testscripts

const raceEnabled = true
