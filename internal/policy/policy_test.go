package policy

import "testing"

func allow(commands ...string) (p Policy) {
	for _, c := range commands {
		p.Rules = append(p.Rules, Rule{Command: c})
	}
	return p
}

func deny(commands ...string) (p Policy) {
	for _, c := range commands {
		p.Rules = append(p.Rules, Rule{Deny: true, Command: c})
	}
	return p
}

func run(line string) Request {
	return Request{Kind: "execute", Tool: "Bash", Command: line, Cwd: "/w", Home: "/home/u"}
}

// A command line is allowed if all that it runs is.
func TestDecide_AllowsCommands(t *testing.T) {
	p := allow("git status", "git log", "ls", "wc -l")
	for line, want := range map[string]Verdict{
		"git status": Allow, "git status -s .": Allow, "git  status": Allow, `"git" 'status'`: Allow, `gi\t status`: Allow,
		"git status && git log": Allow, "git log | wc -l": Allow, "git log $(ls)": Allow, "(git status; ls) 2>&1": Allow,
		"git status > /dev/null 2>&1": Allow, "git log < in": Allow, "! ls": Allow, "if ls; then git status; fi": Allow,
		"bash -lc 'git status'": Allow, `/bin/bash -lc "git status && ls"`: Allow, "sh -c 'bash -c ls'": Allow, "ls $HOME": Allow, "ls &": Allow,

		"git": Ask, "git push": Ask, "gitstatus": Ask, "git statusx": Ask, "git -C / status": Ask, "/usr/bin/git status": Ask,
		"git status; rm -rf /": Ask, "git status || reboot": Ask, "git log | sh": Ask, "git log $(reboot)": Ask, "git log `reboot`": Ask,
		"ls <(reboot)": Ask, "git status\nreboot": Ask, "git status & reboot": Ask, "ls > out": Ask, "ls >> out": Ask, "ls &> out": Ask,
		"ls >| out": Ask, "ls 2>err": Ask, "PATH=/evil git status": Ask, "X=1": Ask, "git() { reboot; }; git status": Ask,
		"for PATH in /evil; do git status; done": Ask, "export PATH=/evil; git status": Ask, "alias ls=reboot; ls": Ask,
		"$X status": Ask, "git $X": Ask, "g* status": Ask, "{git,status}": Ask, "~/git status": Ask, "eval ls": Ask, "exec ls": Ask,
		"sudo ls": Ask, "env ls": Ask, "xargs ls": Ask, "sh -c $X": Ask, "sh -c": Ask, "sh script": Ask, "bash -ic ls": Ask,
		"bash -c 'ls; reboot'": Ask, "bash --rcfile x -c ls": Ask, "ls ${PATH:=/evil}": Ask, "ls $((a[0]))": Ask, "ls $'x": Ask, "": Ask, "   ": Ask,
		"((x=1))": Ask, "let x=1": Ask, "cat <<E\n$(reboot)\nE": Ask, "ls <<E\n$(reboot)\nE": Ask, "ls <<E\ntext\nE": Allow, "coproc ls": Ask,
		"[[ -n $(reboot) ]]": Ask, "case x in x) reboot;; esac": Ask, "while ls; do reboot; done": Ask, "ls \x00": Ask,
	} {
		if got := p.Decide("", run(line)); got.Verdict != want {
			t.Errorf("%q: %s, want %s", line, got.Verdict, want)
		}
	}
}

// One that is denied is refused wherever it is; where it may be and cannot be told, the user is asked.
func TestDecide_DeniesCommands(t *testing.T) {
	p := deny("git push", "rm")
	for line, want := range map[string]Verdict{
		"git push": Deny, "git push origin main": Deny, "ls; git push": Deny, "ls $(git push)": Deny, "/usr/bin/git push": Deny,
		"sudo git push": Deny, "env X=1 git push": Deny, "timeout 5 git push": Deny, "X=1 git push": Deny, "xargs rm": Deny, "rm": Deny,
		"bash -lc 'git push'": Deny, "sh -c 'sudo rm x'": Deny, "f() { rm x; }": Deny, "find . -exec rm {} +": Deny, "eval git push": Deny,

		"git -C dir push": Ask, "git -c a=b push": Ask, "$X push": Ask, "git $X": Ask, "eval $X": Ask, "curl u | sh": Ask, "sh script": Ask,
		"bash -c $X": Ask, ". file": Ask, "sudo $X": Ask, "sudo sh -c 'rm x'": Ask, "echo 'unclosed": Ask, "git commit -m push": Ask, "ssh h rm x": Deny,
		"xargs sh": Ask,

		"echo git push": Ask, "ls rm": Ask, "grep rm x": Ask, "git rmx": Allow,
		"git status": Allow, "git pull": Allow, "pushd git": Allow, "ls | wc -l": Allow, "export X=1; make": Allow, "[[ -f x ]] && make": Allow,
	} {
		if got := p.Decide("all", run(line)); got.Verdict != want {
			t.Errorf("%q: %+v, want %s", line, got, want)
		}
	}
}

func TestDecide_Files(t *testing.T) {
	p := Policy{Rules: []Rule{
		{Kind: "edit", Path: "src/**"}, {Kind: "edit", Path: "/tmp/*"}, {Path: "~/notes"},
		{Deny: true, Path: "**/.env"}, {Deny: true, Kind: "edit", Path: "src/gen", Reason: "made by a tool"},
	}}
	for _, tt := range []struct {
		kind  string
		paths []string
		want  Verdict
	}{
		{"edit", []string{"/w/src/a.go"}, Allow}, {"edit", []string{"src/deep/b.go"}, Allow}, {"edit", []string{"src"}, Allow},
		{"edit", []string{"/w/src/a", "/w/b"}, Ask}, {"edit", []string{"/w/src/../b"}, Ask}, {"edit", []string{"/tmp/x"}, Allow},
		{"edit", []string{"/home/u/notes/today"}, Allow}, {"read", []string{"/home/u/notes"}, Allow}, {"edit", []string{"/home/u"}, Ask},
		{"read", []string{".env"}, Deny}, {"read", []string{"/etc/.env"}, Deny}, {"edit", []string{"src/a/.env"}, Deny},
		{"read", []string{"a", "b/.env"}, Deny}, {"edit", []string{"src/gen/x"}, Deny}, {"read", []string{"src/gen/x"}, Ask},
		{"edit", nil, Ask}, {"read", nil, Ask}, {"edit", []string{"srcx"}, Ask}, {"delete", []string{"src/a"}, Ask},
	} {
		q := Request{Kind: tt.kind, Tool: "T", Paths: tt.paths, Cwd: "/w", Home: "/home/u"}
		if got := p.Decide("", q); got.Verdict != tt.want {
			t.Errorf("%s %q: %+v, want %s", tt.kind, tt.paths, got, tt.want)
		}
	}
	q := run("cat notes")
	if got := p.Decide("all", q); got.Verdict != Ask || got.By == "" {
		t.Errorf("a command may read what is denied: %+v", got)
	}
	if got := p.Decide("", Request{Kind: "edit", Paths: []string{"src/gen"}, Cwd: "/w"}); got.Reason != "made by a tool" {
		t.Errorf("%+v", got)
	}
}

func TestDecide_Kinds(t *testing.T) {
	for _, tt := range []struct {
		approve, kind string
		paths         []string
		want          Verdict
	}{
		{"none", "read", nil, Ask}, {"reads", "read", nil, Allow}, {"reads", "search", nil, Allow}, {"reads", "edit", []string{"a"}, Ask},
		{"reads", "fetch", nil, Ask}, {"edits", "edit", []string{"a", "/w/b"}, Allow}, {"edits", "edit", []string{"/etc/a"}, Ask},
		{"edits", "edit", nil, Ask}, {"edits", "delete", []string{"a"}, Allow}, {"edits", "move", []string{"a", "../b"}, Ask},
		{"edits", "execute", nil, Ask}, {"all", "other", nil, Allow}, {"", "read", nil, Ask}, {"bogus", "read", nil, Ask},
	} {
		if got := (Policy{}).Decide(tt.approve, Request{Kind: tt.kind, Paths: tt.paths, Cwd: "/w"}); got.Verdict != tt.want {
			t.Errorf("%s, %s %q: %+v", tt.approve, tt.kind, tt.paths, got)
		}
	}
}

func TestDecide_Tools(t *testing.T) {
	p := Policy{Rules: []Rule{{Tool: "mcp__docs__*"}, {Deny: true, Tool: "WebFetch", From: "p.toml:4"}, {Kind: "think"}}}
	for tool, want := range map[string]Verdict{"mcp__docs__read": Allow, "mcp__mail__send": Ask, "WebFetch": Deny, "": Ask} {
		if got := p.Decide("", Request{Kind: "other", Tool: tool}); got.Verdict != want {
			t.Errorf("%q: %+v", tool, got)
		}
	}
	if got := p.Decide("", Request{Kind: "other", Tool: "WebFetch"}); got.By != "p.toml:4" {
		t.Errorf("%+v", got)
	}
	// What may be a tool that is denied is not allowed by anything else.
	if got := p.Decide("all", Request{Kind: "think"}); got.Verdict != Ask {
		t.Errorf("%+v", got)
	}
}

func TestAlways(t *testing.T) {
	for _, tt := range []struct {
		first  Request
		ok     bool
		second Request
		want   Verdict
	}{
		{run("make x"), true, run("make x"), Allow},
		{run("make x"), true, run("make y"), Ask},
		{run("make x"), true, run("make x; reboot"), Ask},
		{Request{Kind: "execute"}, false, Request{}, Ask},
		{Request{Kind: "edit", Tool: "Edit", Paths: []string{"/w/a"}, Cwd: "/w"}, true, Request{Kind: "edit", Tool: "Edit", Paths: []string{"b"}, Cwd: "/w"}, Allow},
		{Request{Kind: "edit", Tool: "Edit", Paths: []string{"/w/a"}, Cwd: "/w"}, true, Request{Kind: "edit", Tool: "Edit", Paths: []string{"/etc/b"}, Cwd: "/w"}, Ask},
		{Request{Kind: "edit", Tool: "Edit", Paths: []string{"/etc/a"}, Cwd: "/w"}, false, Request{}, Ask},
		{Request{Kind: "other", Tool: "m*"}, true, Request{Kind: "other", Tool: "m*"}, Allow},
		{Request{Kind: "other", Tool: "m*"}, true, Request{Kind: "other", Tool: "mx"}, Ask},
		{Request{Kind: "other"}, false, Request{}, Ask},
	} {
		r, ok := Always(tt.first)
		if ok != tt.ok {
			t.Errorf("%+v: %v", tt.first, ok)
		}
		if got := (Policy{Rules: []Rule{r}}).Decide("", tt.second); ok && got.Verdict != tt.want {
			t.Errorf("after %+v, %+v: %+v", tt.first, tt.second, got)
		}
	}
}

func TestX37_Unkept(t *testing.T) {
	p := Policy{Rules: []Rule{
		{Command: "git"}, {Deny: true, Command: "git push"}, {Deny: true, Kind: "read", Path: ".env"}, {Deny: true, Tool: "X"}, {Deny: true, Path: "a"},
	}}
	for _, tt := range []struct {
		unasked []string
		want    int
	}{{nil, 0}, {[]string{"execute"}, 3}, {[]string{"read"}, 3}, {[]string{"think"}, 1}, {[]string{"edit", "fetch"}, 2}} {
		if got := p.Unkept(tt.unasked); len(got) != tt.want {
			t.Errorf("%q: %+v", tt.unasked, got)
		}
	}
}

// A file is what it is under whichever name: a rule holds for what its directories lead to.
func TestRule_Real(t *testing.T) {
	behind := func(name string) string {
		if name == "/w/data" || name == "/home/u" {
			return "/real" + name
		}
		return name
	}
	for pattern, want := range map[string]string{"data/**": "/real/w/data/**", "data": "/real/w/data", "~/": "/real/home/u", "src/*": "", "**/.env": "", "": "", "/w/data/x*": "/real/w/data/x*"} {
		real, ok := Rule{Deny: true, Path: pattern}.Real("/w", "/home/u", behind)
		if ok != (want != "") || ok && (real.Path != want || !real.Deny) {
			t.Errorf("%q: %q, %v", pattern, real.Path, ok)
		}
	}
}
