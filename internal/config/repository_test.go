package config

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
)

const repositoryWhole = `
[worktree]
setup = ["npm ci", "make gen"]
cleanup = "docker compose down"
copy = [".env", "config/local.*", "certs/"]
setup_timeout = "20m"
cleanup_timeout = "2m"
[archive]
keep = [".env*", "*.pem"]
`

func TestX26_RepositoryReadsEveryKey(t *testing.T) {
	got, err := Repository(RepositoryFile, []byte(repositoryWhole))
	if err != nil {
		t.Fatal(err)
	}
	var want Repo
	want.Worktree.Setup = Commands{"npm ci", "make gen"}
	want.Worktree.Cleanup = Commands{"docker compose down"}
	want.Worktree.Copy = []string{".env", "config/local.*", "certs/"}
	want.Worktree.SetupTimeout, want.Worktree.CleanupTimeout = Duration(20*time.Minute), Duration(2*time.Minute)
	want.Archive.Keep = []string{".env*", "*.pem"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("repository (-want +got):\n%s", diff)
	}
}

func TestX26_RepositoryDefaults(t *testing.T) {
	for _, text := range []string{"", "\n", "[worktree]\n[archive]\n"} {
		got, err := Repository(RepositoryFile, []byte(text))
		if diff := cmp.Diff(DefaultRepo(), got); err != nil || diff != "" {
			t.Errorf("%q: error %v (-want +got):\n%s", text, err, diff)
		}
		if !got.Empty() {
			t.Errorf("%q asks for trust", text)
		}
	}
	none, err := Repository(RepositoryFile, []byte("archive.keep = []\n"))
	if err != nil || len(none.Archive.Keep) > 0 {
		t.Errorf("keeping nothing: %v, error %v", none.Archive.Keep, err)
	}
}

func TestX26_RepositoryNamesFileLineAndKey(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"unknown key":          {"[worktree]\nset_up = 'x'\n", ":2: worktree.set_up: unknown key"},
		"unknown table":        {"\n[agent.x]\nkind = 'acp'\n", ":2: agent.x: unknown key"},
		"the user's key":       {"default_agent = 'codex'\n", ":1: default_agent: unknown key"},
		"another case":         {"[worktree]\nSetup = 'x'\n", ":2: worktree.Setup: unknown key"},
		"number":               {"[worktree]\n\nsetup = 1\n", ":3: worktree.setup: must be a string or a list of strings"},
		"list of lists":        {"[worktree]\nsetup = [['a']]\n", ":2: worktree.setup: must be a string or a list of strings"},
		"table":                {"[worktree.setup]\na = 1\n", ":1: worktree.setup: must be a string or a list of strings"},
		"copy that is no":      {"[worktree]\ncopy = '.env'\n", ":2: worktree.copy: incompatible types"},
		"worktree no table":    {"worktree = 1\n", ":1: worktree: "},
		"blank command":        {"[worktree]\nsetup = ['a', \"\\t\\n\"]\n", `:2: worktree.setup: "\t\n" is blank`},
		"blank clean-up":       {"[worktree]\ncleanup = ''\n", `:2: worktree.cleanup: "" is blank`},
		"command with NUL":     {"[worktree]\nsetup = \"a\\u0000b\"\n", `:2: worktree.setup: "a\x00b" holds a NUL`},
		"pattern with NUL":     {"[worktree]\ncopy = [\"a\\u0000b\"]\n", `:2: worktree.copy: "a\x00b" holds a NUL`},
		"absolute pattern":     {"[worktree]\ncopy = ['/etc/passwd']\n", `:2: worktree.copy: "/etc/passwd" is absolute`},
		"pattern up":           {"[worktree]\ncopy = ['a/../../b']\n", `:2: worktree.copy: "a/../../b" is no pattern of paths below the root`},
		"pattern of the root":  {"[worktree]\ncopy = ['./']\n", `:2: worktree.copy: "./" is no pattern of paths`},
		"pattern of all":       {"[worktree]\ncopy = ['a/**']\n", `:2: worktree.copy: "a/**" has **, which is not supported`},
		"no pattern":           {"[archive]\nkeep = ['[a']\n", `:2: archive.keep: "[a" is no pattern`},
		"blank pattern":        {"[archive]\nkeep = [' ']\n", `:2: archive.keep: " " is blank`},
		"no duration":          {"[worktree]\nsetup_timeout = 5\n", `:2: worktree.setup_timeout: "5" is no duration`},
		"no time":              {"[worktree]\ncleanup_timeout = '0s'\n", ":2: worktree.cleanup_timeout: must be positive"},
		"no UTF-8":             {"[worktree]\nsetup = '\xff'\n", ":2: worktree.setup: invalid UTF-8"},
		"too large":            {strings.Repeat("#", MaxRepositoryFile+1), ": larger than 1MiB"},
		"deep key":             {"worktree." + strings.Repeat("a.", 500_000) + "a = 1\n", ": nested too deeply"},
		"deep tables":          {"x = " + strings.Repeat("{a=", 300_000), ": nested too deeply"},
		"deep lists":           {"x = " + strings.Repeat("[", 1_000_000), ": nested too deeply"},
		"hidden behind a mark": {`x = [""" """", ` + strings.Repeat("{a=", 300_000), ": nested too deeply"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Repository(".pintle.toml at 1a2b3c4", []byte(test.text))
			var wrong *Error
			if !errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), ".pintle.toml at 1a2b3c4"+test.want) {
				t.Errorf("error %v, want .pintle.toml at 1a2b3c4%s", err, test.want)
			}
		})
	}
}

// What is in strings and comments does not nest.
func TestDepth(t *testing.T) {
	for text, want := range map[string]int{
		"":                                   0,
		repositoryWhole:                      1,
		"a.b.c = 1.5\n[x.y]\nz = {a.b=1}":    2,
		`a = "[[[...\"[[["`:                  0,
		"a = '[[[\\' # [[[ '\nb=[[[":         3,
		"a = '''\n[[['[[[''''' # [[[":        0,
		"a = \"\"\"[[[\n\\\"\"\"[[[\"\"\"\"": 0,
		`a = """" [`:                         0,
		`a = """"""[`:                        1,
		"a = 'not closed [[[\n[[":            2,
		"[a]\n[b]\n]]]][":                    1,
	} {
		if got := depth([]byte(text)); got != want {
			t.Errorf("%q: depth %d, want %d", text, got, want)
		}
	}
}

// trusted reads a file whose fingerprint is to be taken.
func trusted(t *testing.T, text string) Repo {
	t.Helper()
	r, err := Repository(RepositoryFile, []byte(text))
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return r
}

func TestX26_FingerprintIsOfWhatRuns(t *testing.T) {
	base := "[worktree]\nsetup = ['a', 'b']\ncleanup = 'c'\ncopy = ['d']\n"
	first := trusted(t, base).Fingerprint()
	for name, text := range map[string]string{
		"written otherwise": "# x\nworktree = {copy = [\"d\"], cleanup = ['c'], setup = [\"\\u0061\", 'b'], setup_timeout = '600s'}\n",
		"other keeping":     base + "[archive]\nkeep = ['x']\n",
	} {
		if trusted(t, text).Fingerprint() != first {
			t.Errorf("%s: another fingerprint", name)
		}
	}
	seen := map[string]string{first: "the first"}
	for name, text := range map[string]string{
		"other order":       "[worktree]\nsetup = ['b', 'a']\ncleanup = 'c'\ncopy = ['d']\n",
		"joined":            "[worktree]\nsetup = ['a b']\ncleanup = 'c'\ncopy = ['d']\n",
		"one less":          "[worktree]\nsetup = ['a']\ncleanup = 'c'\ncopy = ['d']\n",
		"moved to clean-up": "[worktree]\nsetup = ['a']\ncleanup = ['b', 'c']\ncopy = ['d']\n",
		"other copy":        "[worktree]\nsetup = ['a', 'b']\ncleanup = 'c'\ncopy = ['e']\n",
		"other time":        base + "setup_timeout = '11m'\n",
		"other end":         base + "cleanup_timeout = '11m'\n",
		"nothing":           "",
	} {
		sum := trusted(t, text).Fingerprint()
		if other, ok := seen[sum]; ok {
			t.Errorf("%s has the fingerprint of %s", name, other)
		}
		seen[sum] = name
	}
}

func TestX26_EmptyIsOfWhatRuns(t *testing.T) {
	for text, want := range map[string]bool{
		"archive.keep = ['a']\n": true, "worktree.setup_timeout = '1s'\n": true, "worktree.setup = []\n": true,
		"worktree.setup = 'a'\n": false, "worktree.cleanup = 'a'\n": false, "worktree.copy = ['a']\n": false,
	} {
		if got := trusted(t, text).Empty(); got != want {
			t.Errorf("%q: empty %v, want %v", text, got, want)
		}
	}
}

// FuzzRepository: whatever a stranger writes, reading it ends soon, in values that keep the rules or in an error of
// one line that names the file.
func FuzzRepository(f *testing.F) {
	for _, seed := range []string{
		repositoryWhole, "", "[worktree]\nsetup = \"\"\"a\n\\\"\"\"\"\"\n", "a = '''x'''''\n", "\"a\".'b'.c = [{d.e=1}]\n", "[worktree]\rsetup='x'",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := Repository("F", text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "F:") {
				t.Errorf("error %q", err)
			}
			return
		}
		for _, rule := range r.rules() {
			if rule.broken {
				t.Errorf("%s: %s", rule.key, rule.want)
			}
		}
		if again := trusted(t, string(text)); again.Fingerprint() != r.Fingerprint() {
			t.Error("two fingerprints")
		}
	})
}

// FuzzDepth: what passes for flat is flat to the library too.
func FuzzDepth(f *testing.F) {
	for _, seed := range []string{repositoryWhole, "a = \"\"\"x\"\"\"\"\nb.c=[[{d={e=1}}]]", "a.'.'.\"[\" = {x.y = 1}\r\n#\r[a.b]"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<10 {
			return
		}
		var all map[string]any
		meta, err := toml.Decode(string(text), &all)
		if err != nil {
			return
		}
		most := depth(text)
		for _, key := range meta.Keys() {
			if len(key) > (most+1)*(most+2) {
				t.Errorf("depth %d, and %d parts in %q", most, len(key), key)
			}
		}
	})
}
