// Package pi drives pi without its screen (`pi --mode rpc`): JSON by lines both ways.
//
// A process has one conversation, whose id is ours. It has a run for each prompt, and for what its extensions want to say by
// themselves; "agent_settled" is what it says when nothing of a run is left to be done. It has no permissions of its own: an
// extension that pintle brings (gate.ts) asks. What the real agent does was recorded by experiment; each rule here that is no
// matter of course says which surprise it answers.
package pi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/wire"
)

// Name is what -a calls this provider.
const Name = "pi"

// Tested is the version that this was tested with. One that is newer is driven all the same.
const Tested = "1.6.0"

// Provider returns the provider. It uses no tool unasked once it was told to ask, and says so: see opening.go.
func Provider() providers.Provider {
	return providers.Provider{
		Name: Name, Program: "pi", Environment: environment, Tested: Tested, Install: "npm install -g @earendil-works/pi-coding-agent",
		Keys: keys, Credentials: credentials, Login: "pi, and /login there; or set the key of a model's provider, such as ANTHROPIC_API_KEY",
		Manifest: manifest, Stdin: true, Steers: true, Lockless: true, Split: wire.Split, New: restore, Launch: launch,
	}
}

// keys are those of the providers of models that it knows. What gives access to a cloud besides, such as
// AWS_SECRET_ACCESS_KEY, is the user's to name: it would be there for every command of the agent's too.
var keys = []string{
	"ANTHROPIC_API_KEY", "ANTHROPIC_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "GEMINI_API_KEY",
	"OPENROUTER_API_KEY", "AI_GATEWAY_API_KEY", "COPILOT_GITHUB_TOKEN", "DEEPSEEK_API_KEY", "GROQ_API_KEY", "MISTRAL_API_KEY",
	"XAI_API_KEY", "CEREBRAS_API_KEY", "ZAI_API_KEY", "OPENCODE_API_KEY", "NVIDIA_API_KEY", "HF_TOKEN", "FIREWORKS_API_KEY",
	"TOGETHER_API_KEY", "BASETEN_API_KEY", "KIMI_API_KEY", "MOONSHOT_API_KEY", "MINIMAX_API_KEY", "RADIUS_API_KEY",
	"AWS_BEARER_TOKEN_BEDROCK",
}

// environment are its settings, and what providers of models want.
var environment = append([]string{
	"PI_*", "ANTHROPIC_*", "OPENAI_*", "AZURE_OPENAI_*", "GEMINI_*", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT",
	"GOOGLE_CLOUD_LOCATION", "CLOUDFLARE_*", "QWEN_*_API_KEY", "XIAOMI_*_API_KEY", "ZAI_CODING_CN_API_KEY", "MINIMAX_CN_API_KEY",
	"ANT_LING_API_KEY", "META_API_KEY", "XIAOMI_API_KEY", "TYPESAFE_API_KEY",
	"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE",
}, keys...)

// home is where its settings, logins and conversations are.
func home(env map[string]string) string {
	return cmp.Or(below(env, env["PI_CODING_AGENT_DIR"]), filepath.Join(env["HOME"], ".pi", "agent"))
}

// below is a directory that may begin with ~.
func below(env map[string]string, dir string) string {
	if rest, ok := strings.CutPrefix(dir, "~"); ok && (rest == "" || rest[0] == '/') {
		return env["HOME"] + rest
	}
	return dir
}

func credentials(env map[string]string) []string {
	return []string{wire.Literal(home(env)) + "/auth.json", wire.Literal(home(env)) + "/models.json"}
}

// manifest is where the version is, which pi does not tell in this mode; "" if the program is not npm's.
func manifest(program string) string {
	pkg, ok := strings.CutSuffix(program, "/dist/bundle/cli.js")
	if !ok || filepath.Base(pkg) != "pi-coding-agent" {
		return ""
	}
	return filepath.Join(pkg, "package.json")
}

func restore(saved json.RawMessage) (providers.Fold, error) {
	f := &fold{}
	if len(saved) == 0 || bytes.Equal(saved, []byte("null")) {
		return f, nil
	}
	if err := json.Unmarshal(saved, &f.state); err != nil {
		return nil, fmt.Errorf("state of pi's protocol: %w", err)
	}
	return f, nil
}
