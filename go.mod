module github.com/pintle/pintle

go 1.26.0

require (
	github.com/BurntSushi/toml v1.6.0
	github.com/alecthomas/kong v1.17.0
	github.com/creack/pty v1.1.24
	github.com/gofrs/flock v0.13.2
	github.com/google/go-cmp v0.7.0
	github.com/google/renameio/v2 v2.0.2
	github.com/sourcegraph/jsonrpc2 v0.2.3
	golang.org/x/sys v0.50.0
	pgregory.net/rapid v1.3.0
)

require golang.org/x/term v0.48.0

require mvdan.cc/sh/v3 v3.14.1

require (
	github.com/rogpeppe/go-internal v1.16.0
	golang.org/x/tools v0.38.0 // indirect
)
