package supervisor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLocated(t *testing.T) {
	for name, want := range map[string]string{
		"a": "/w/a", "../a": "/w/../a", "/etc/a": "/etc/a", "~": "/h", "~/a": "/h/a", "a~": "/w/a~", "./~/a": "/w/./~/a",
		"": "", "~u/a": "", "file:///etc/a": "", "a\x00b": "", "https://x": "",
	} {
		got, ok := located(name, "/w", "/h")
		if ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q, %v", name, got, ok)
		}
	}
	if _, ok := located("~/a", "/w", ""); ok {
		t.Error("there is no home")
	}
}

// A path leads where the kernel would go, whether there is something or not.
func TestBehind(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	for _, link := range [][2]string{
		{"/out/new", "dangling"}, {"/out", "link"}, {"dangling", "twice"}, {"loop", "loop"}, {"sub", "in"}, {"../..", "up"},
	} {
		err = errors.Join(err, os.Symlink(link[0], filepath.Join(dir, link[1])))
	}
	if err = errors.Join(err, os.Mkdir(filepath.Join(dir, "sub"), 0o700), os.WriteFile(filepath.Join(dir, "file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"dangling": "/out/new", "link/../secret": "/secret", "link/x/../y": "/out/y", "twice": "/out/new", "in/x": "D/sub/x", "none/x": "D/none/x", "file": "D/file",
		"file/x": "D/file/x", "./sub/../file": "D/file", "loop": "", "loop/x": "", "": "D",
	} {
		got, ok := behind(dir + "/" + name)
		if want = strings.Replace(want, "D", dir, 1); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q, %v; want %q", name, got, ok, want)
		}
	}
	if got, ok := behind(dir + "/up/x"); !ok || got != filepath.Join(dir, "../../x") {
		t.Errorf("%q", got)
	}
	if got, ok := behind("/../.."); !ok || got != "/" {
		t.Errorf("%q", got)
	}
}
