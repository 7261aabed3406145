# Every recipe is a line that works without just: copy it.

# List the recipes.
default:
    @just --list

# Without cgo it is static, and every verb and shim starts 1.5 ms sooner.
build:
    CGO_ENABLED=0 go build -trimpath -o pintle ./cmd/pintle

# The tests, as the README names them.
test:
    go test ./...

race:
    go test -race -shuffle=on -count=1 ./...

# As .ci/run does; with golangci-lint at hand, `golangci-lint run` says more.
lint:
    go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...

vet:
    go vet ./...
    GOOS=darwin go vet ./...

# Run each fuzzer for a while.
fuzz time="20s":
    go run ./testscripts/ci fuzz {{time}}

# Kill everything at random for a while; another seed is another storm.
storm time="60s" seed="1":
    go run ./testscripts/storm -for {{time}} -seed {{seed}}

# Go on until 10,000 kills (docs/performance.md has the figures of one such run).
storm-10000 seed="1":
    go run ./testscripts/storm -kills 10000 -seed {{seed}}

# Measure the figures of docs/performance.md.
bench:
    go test -run '^$' -bench . ./...

# All that a change must pass.
ci:
    bash .ci/run
