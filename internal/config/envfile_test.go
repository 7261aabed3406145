package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// envFile writes text to a file with a mode.
func envFile(t *testing.T, text string, mode fs.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secrets.env")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestE2_EnvFileIsReadLineByLine(t *testing.T) {
	text := "# comment\n\n  A=plain\nB = spaced out \t\nC='single $HOME \\n # \"x\"'\n" +
		`D="double \"x\" \n \\ \$ \q # y" # comment` + "\nexport E=exported\nF=\nG=a#b # comment\nH=#comment\nI=a=b=c\r\nA2=ü\nJ=\"\"\nA=last\n"
	got, err := ReadEnvFile(envFile(t, text, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"A": "last", "A2": "ü", "B": "spaced out", "C": `single $HOME \n # "x"`, "D": "double \"x\" \n \\ $ \\q # y",
		"E": "exported", "F": "", "G": "a#b", "H": "", "I": "a=b=c", "J": "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
}

func TestE2_EnvFileErrorsNameTheLineAndNoValue(t *testing.T) {
	for line, name := range map[string]string{
		"hush": "", "=hush": "", "1A=hush": "", "A B=hush": "", "A-B=hush": "", "A='hush": "A", `A="hush`: "A", `A="hush\"`: "A",
		"A='x' hush": "A", "A=\"x\"hush": "A", "A=hu\x00sh": "A",
	} {
		_, err := ReadEnvFile(envFile(t, "OK=1\n"+line+"\n", 0o600))
		if err == nil || !strings.Contains(err.Error(), "secrets.env:2: ") || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: error %v", line, err)
		}
		var wrong *Error
		if errors.As(err, &wrong) && name != "" && wrong.Key != name {
			t.Errorf("%q: the error names %q", line, wrong.Key)
		}
	}
}

func TestE2_EnvFileMustBePrivate(t *testing.T) {
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o620, 0o602, 0o644, 0o666, 0o610} {
		_, err := ReadEnvFile(envFile(t, "A=hush\n", mode))
		if err == nil || !strings.Contains(err.Error(), "0600") || !strings.Contains(err.Error(), fmt.Sprintf("%04o", mode)) {
			t.Errorf("mode %04o: error %v", mode, err)
		}
	}
	for _, mode := range []fs.FileMode{0o600, 0o400} {
		if _, err := ReadEnvFile(envFile(t, "A=1\n", mode)); err != nil {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
}

func TestE2_EnvFileThatIsConfiguredMustBeThere(t *testing.T) {
	if vars, err := (Env{}).Read(); vars != nil || err != nil {
		t.Errorf("none configured: %v, %v", vars, err)
	}
	if _, err := (Env{File: filepath.Join(t.TempDir(), "gone")}).Read(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("gone: %v", err)
	}
	if _, err := ReadEnvFile(t.TempDir()); err == nil {
		t.Error("a directory was read")
	}
	if _, err := ReadEnvFile(envFile(t, "A="+strings.Repeat("x", maxEnvFile), 0o600)); err == nil {
		t.Error("an endless file was read")
	}
}

func TestValues(t *testing.T) {
	for text, want := range map[string]string{"30s": "30s", "600s": "10m", "3600s": "1h", "90m": "1h30m", "0s": "0s", "1h0m5s": "1h0m5s", "100ms": "100ms"} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err != nil || d.String() != want {
			t.Errorf("duration %s reads as %s, %v", text, d, err)
		}
	}
	for text, want := range map[string]int64{"0": 0, "1": 1, "7B": 7, "1KiB": 1024, "32MiB": 32 << 20, "1 GiB": 1 << 30, "2TiB": 2 << 40} {
		var b, again Bytes
		if err := b.UnmarshalText([]byte(text)); err != nil || int64(b) != want {
			t.Errorf("size %s reads as %d, %v", text, b, err)
		}
		if err := again.UnmarshalText([]byte(b.String())); err != nil || again != b {
			t.Errorf("size %s prints as %s", text, b)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1.5GiB", "1GB", "9223372036854775808", "8388608TiB", "1MiBB"} {
		var b Bytes
		if err := b.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("size %q reads as %d", text, b)
		}
	}
}
