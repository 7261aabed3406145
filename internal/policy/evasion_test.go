package policy

import "testing"

// Shells evaluate more than they show: none of these is only what it seems to be.
func TestDecide_AllowsNothingElse(t *testing.T) {
	p := allow("ls", "echo", "cat", "[[")
	for _, line := range []string{
		"ls; [[ 'a[$(reboot)]' -eq 0 ]]", "ls; [[ -v 'a[$(reboot)]' ]]", "ls ${HOME:'a[$(reboot)]'}", "ls ${HOME:a[\\$(reboot)]}", "ls ${HOME:PATH=5}",
		"echo ${a['$(reboot)']}", "echo ${#a['$(reboot)']}", "echo ${HOME@P}", "ls ${HOME/@($(reboot))/}", "ls ${HOME#@($(reboot))}",
		"ls; [[ x == @($(reboot)) ]]", "ls; [[ x == +(`reboot`) ]]", "ls @($(reboot))", "case x in @($(reboot))) ;; esac; ls", "declare 'a[$(reboot)]=1'; ls",
		`bash -c 'echo "${0@P}"' '$(reboot)'`, `bash -c 'echo "${!0}"' 'a[$(reboot)]'`, "bash -c 'echo $0' ls", "ls $((1+a))", "ls ${ reboot; }",
		"cat <<$'\\x45'\nfoo\nE\nreboot\n\\x45\n", "cat <<$\"E\"\nfoo\nE\nreboot\n$E\n", "cat <<E\r\nfoo\nE\nreboot\nE\r\n", "cat <<\"a\\b\"\nfoo\na\\b\nreboot\n",
		"sh -c 'ls; [[ a || reboot ]]'", "ls; [[ a || reboot ]]", "sh -c \"ls \\$'\\\\'; reboot #'\"", "zsh -c \"ls *(e:'reboot':)\"", "ls # \\\nreboot", "ls # x",
	} {
		if got := p.Decide("", run(line)); got.Verdict != Ask {
			t.Errorf("%q: %+v", line, got)
		}
	}
}

// Whatever runs what is denied, by whatever name it is called, somebody is asked.
func TestDecide_IsNotEvaded(t *testing.T) {
	p := deny("git push", "rm")
	for _, line := range []string{
		"sudo git -C . push", "env git -c a=b push", "timeout 5 git --no-pager push", "env -S 'git push'", "env -Sgit\\ push", "echo push | xargs git", "xargs -a f git",
		"parallel git ::: push", "xargs -I% git % <<< push", "watch 'git push'", "script -c 'git push'", "flock f -c 'git push'", "sudo -i 'git push'",
		"git -c alias.p=push p", "git -c alias.p='!git push' p", "git submodule foreach 'git push'", "git rebase -x 'git push' HEAD~1",
		"GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.p GIT_CONFIG_VALUE_0=push git p", "alias g=git\ng push", "trap 'git push' EXIT", "hash -p /usr/bin/git g; g push",
		"[[ 'a[$(git push)]' -eq 0 ]]", "let 'a[$(git push)]'", "ls @($(rm x))", "bash -c 'echo ${0@P}' '$(git push)'", "ls # \\\ngit push",
		"cat <<$'\\x45'\nE\ngit push\n\\x45\n", "sh -c \"ls \\$'\\\\'; git push #'\"", "sh -c 'ls; [[ a || rm ]]'", "fish -c 'git push'", "busybox ash -c 'git push'",
		"su x -c 'rm y'", "pkexec rm x", "/lib64/ld-linux-x86-64.so.2 /usr/bin/git push", "npx git push", "docker run x git push", "GIT push", "gi\"t\" pu\\sh",
		"find . -name push -exec git {} ';'", "mapfile -C 'git push' -c 1 x", "exec < f", "sh -s <<E\ngit push\nE", "bash <<< 'git push'", "git ${X:-push}",
	} {
		if got := p.Decide("all", run(line)); got.Verdict == Allow {
			t.Errorf("%q: %+v", line, got)
		}
	}
}

// Where the agent works, and its home, are no patterns.
func TestDecide_DirectoriesAreNoPatterns(t *testing.T) {
	for _, tt := range []struct {
		rule, cwd, home, path string
		want                  Verdict
	}{
		{"secret", "/w/[id]", "/h", "/w/[id]/secret", Deny}, {"~/.ssh", "/w", "/h/[u]", "/h/[u]/.ssh/x", Deny}, {"none", "/w/[id]", "/h", "/w/[id]/x", Allow},
		{"none", "/w/p*", "/h", "/w/prod/x", Ask},
	} {
		p := Policy{Rules: []Rule{{Deny: true, Path: tt.rule}}}
		if got := p.Decide("edits", Request{Kind: "edit", Paths: []string{tt.path}, Cwd: tt.cwd, Home: tt.home}); got.Verdict != tt.want {
			t.Errorf("%+v: %+v", tt, got)
		}
	}
}

// What is about all that is below a directory may be about what is denied there.
func TestDecide_DirectoriesAbove(t *testing.T) {
	for _, tt := range []struct {
		kind, rule, path string
		want             Verdict
	}{
		{"search", "**/.env", "/w", Ask}, {"search", "keys/prod", "/w", Ask}, {"search", "keys/prod", "/w/src", Allow}, {"search", "keys/*/x", "/w/keys/a", Ask},
		{"delete", "keys/prod", "/w/keys", Ask}, {"move", "keys/prod", "/w/keys", Ask}, {"read", "**/.env", "/w/a", Allow}, {"edit", "keys/prod", "/w/keys", Allow},
	} {
		p := Policy{Rules: []Rule{{Deny: true, Path: tt.rule}}}
		if got := p.Decide("all", Request{Kind: tt.kind, Paths: []string{tt.path}, Cwd: "/w", Home: "/h"}); got.Verdict != tt.want {
			t.Errorf("%+v: %+v", tt, got)
		}
	}
}

// Whatever a tool calls itself: if it runs something, that decides.
func TestDecide_CommandsOfOtherKinds(t *testing.T) {
	for _, kind := range []string{"read", "think", "other", "edit"} {
		q := run("git push")
		q.Kind, q.Paths = kind, []string{"/w/a"}
		if got := deny("git push").Decide("all", q); got.Verdict != Deny {
			t.Errorf("%s: %+v", kind, got)
		}
		for _, approve := range []string{"reads", "edits"} {
			if got := (Policy{Rules: []Rule{{Kind: kind}}}).Decide(approve, q); got.Verdict != Ask {
				t.Errorf("%s, %s: %+v", kind, approve, got)
			}
		}
	}
	if got := (Policy{Rules: []Rule{{Deny: true, Tool: "mcp__*"}}}).Decide("all", Request{Kind: "other", Tool: "mcp__a/b"}); got.Verdict != Deny {
		t.Errorf("%+v", got)
	}
}

// What was allowed of a file is allowed of no other directory's.
func TestAlways_Files(t *testing.T) {
	for _, kind := range []string{"read", "search", "edit"} {
		q := Request{Kind: kind, Tool: "T", Paths: []string{"/w/a"}, Cwd: "/w"}
		r, ok := Always(q)
		q.Paths = []string{"/home/u/.ssh/id"}
		if got := (Policy{Rules: []Rule{r}}).Decide("", q); !ok || got.Verdict != Ask {
			t.Errorf("%s: %v, %+v", kind, ok, got)
		}
		if _, ok := Always(q); ok {
			t.Errorf("%s of a file elsewhere is allowed for good", kind)
		}
	}
}
