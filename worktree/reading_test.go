package worktree

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// versions collects what is handed over of a file, and meddles with it at each beginning.
func versions(t *testing.T, meddle func(path string, n int)) (got []string, err error) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	must(t, os.WriteFile(path, []byte("12345"), 0o600))
	r, err := openReader(dir, nil)
	must(t, err)
	defer r.close()
	var current bytes.Buffer
	err = r.content("f", sink{
		begin: func(info fs.FileInfo) (io.Writer, error) {
			current.Reset()
			meddle(path, len(got))
			return &current, nil
		},
		end: func() error { got = append(got, current.String()); return nil },
	})
	return got, err
}

func TestX21_FileThatChangesWhileItIsRead(t *testing.T) {
	put := func(path, text string) {
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
		must(t, err)
		_, err = file.WriteString(text)
		must(t, errors.Join(err, file.Close()))
	}
	for name, c := range map[string]struct {
		meddle func(path string, n int)
		want   []string
		fails  bool
	}{
		"steady":          {func(string, int) {}, []string{"12345"}, false},
		"grows once":      {func(p string, n int) { put(p, "12345678") }, []string{"12345", "12345678", "12345678"}, false},
		"shrinks once":    {func(p string, n int) { put(p, "123") }, []string{"123\x00\x00", "123", "123"}, false},
		"keeps shrinking": {func(p string, n int) { put(p, "1234"[:3-n]) }, []string{"123\x00\x00", "12\x00", "1\x00"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := versions(t, c.meddle)
			if (err != nil) != c.fails || len(got) == 0 || got[len(got)-1] != c.want[len(c.want)-1] {
				t.Errorf("%q, error %v; want %q", got, err, c.want)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Errorf("version %d: %q, want %q", i, got[i], c.want[i])
				}
			}
		})
	}
}

func TestX21_FileThatVanishesOrBecomesAnother(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link")))
	must(t, os.Mkdir(filepath.Join(dir, "dir"), 0o700))
	r, err := openReader(dir, nil)
	must(t, err)
	defer r.close()
	for _, name := range []string{"gone", "gone/below", "link", "dir"} {
		err := r.content(name, sink{begin: func(fs.FileInfo) (io.Writer, error) { t.Error("began"); return io.Discard, nil }})
		if !vanished(err) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestX21_Patterns(t *testing.T) {
	for _, c := range []struct {
		patterns []string
		name     string
		want     bool
	}{
		{[]string{".env*"}, ".env", true},
		{[]string{".env*"}, "a/b/.env.local", true},
		{[]string{".env*"}, "a/env", false},
		{[]string{".env*"}, ".envs/x", true},
		{[]string{"/.env"}, "a/.env", false},
		{[]string{"a/.env"}, "a/.env", true},
		{[]string{"a/.env"}, "b/a/.env", false},
		{[]string{"**/a/.env"}, "b/a/.env", true},
		{[]string{"secrets/"}, "secrets", false},
		{[]string{"secrets/"}, "x/secrets/key", true},
		{[]string{".env*", "!.env.example"}, ".env.example", false},
		{[]string{"[!a]x"}, "bx", true},
		{[]string{"[!a]x"}, "ax", false},
		{nil, ".env", false},
	} {
		if got := patterns(c.patterns).match(c.name); got != c.want {
			t.Errorf("%q of %q: %v", c.name, c.patterns, got)
		}
	}
}

func TestX21_TarNamesStayInside(t *testing.T) {
	u := &unpacking{restoration: &restoration{}}
	for _, name := range []string{"tree/../x", "tree//etc/x", "/etc/x", "git/HEAD", "git/modules/../gitdir", "git/modulesx", "x", "tree/", "../x"} {
		if _, _, err := u.place(name); err == nil {
			t.Errorf("%q is let in", name)
		}
	}
	for _, name := range []string{"tree/a/b", "tree/dir/", "git/modules/", "git/modules/x/HEAD"} {
		if _, _, err := u.place(name); err != nil {
			t.Error(err)
		}
	}
}
