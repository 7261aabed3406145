# Every recipe is a line that works without just: copy it.

# What .ci/run installs; with golangci-lint on the PATH, `golangci-lint run` alone will do.
golangci := "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0"

# List the recipes.
default:
    @just --list

build:
    go build -o pintle ./cmd/pintle

test:
    go test ./...

race:
    go test -race -shuffle=on -count=1 ./...

lint:
    go run {{golangci}} run ./...

vet:
    go vet ./...
    GOOS=darwin go vet ./...

# Run each fuzzer for 20 s.
fuzz:
    go run ./testscripts/ci fuzz 20s

# Kill everything at random for a minute; another seed is another storm.
storm seed="1":
    go run -race ./testscripts/storm -for 60s -seed {{seed}}

# Go on until 10,000 kills (docs/performance.md has the figures of one such run).
storm-10000 seed="1":
    go run ./testscripts/storm -kills 10000 -seed {{seed}}

# Measure the figures of docs/performance.md.
bench:
    go test -run '^$' -bench . ./...

ci:
    bash .ci/run
