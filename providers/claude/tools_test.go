package claude

import (
	"fmt"
	"testing"
)

// uses is a tool call, of an agent that a call has started if that is named.
func uses(id, tool, input, parent string) string {
	return fmt.Sprintf(`{"type":"assistant","message":{"id":"A","content":[{"type":"tool_use","id":%q,"name":%q,"input":%s}]},"parent_tool_use_id":%q}`, id, tool, input, parent)
}

// came is what came of it.
func came(id, text, outcome, parent string) string {
	return fmt.Sprintf(`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":%q,"content":%q}]},"tool_use_result":%s,"parent_tool_use_id":%q}`, id, text, outcome, parent)
}

func TestTools(t *testing.T) {
	k := newTalk(t)
	k.runs(order(1, ""))
	k.says(uses("T", "Bash", `{"command":"ls"}`, ""), uses("T", "Bash", `{"command":"ls"}`, ""))
	if a := k.About(); a.Open != 1 || !a.Begun {
		t.Errorf("%+v", a)
	}
	k.say(came("T", "a", `{"stdout":"a","stderr":"b","interrupted":false}`, ""))
	k.say(uses("U", "Read", `{"file_path":"/dir/a"}`, ""))
	k.say(`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"U","content":[{"type":"text","text":"no"}],"is_error":true}]},"tool_use_result":"Error: no"}`)
	k.wantTold("tool_call",
		`{"kind":"execute","rawInput":{"command":"ls"},"status":"in_progress","title":"ls","toolCallId":"T"}`,
		`{"kind":"read","locations":[{"path":"/dir/a"}],"rawInput":{"file_path":"/dir/a"},"status":"in_progress","title":"read a","toolCallId":"U"}`)
	k.wantTold("tool_call_update",
		`{"rawOutput":{"stderr":"b","stdout":"a"},"status":"completed","toolCallId":"T"}`,
		`{"rawOutput":{"output":"no"},"status":"failed","toolCallId":"U"}`)
	if a := k.About(); a.Open != 0 {
		t.Errorf("%+v", a)
	}
}

// Of a command in the background it is told which it is.
func TestTools_Background(t *testing.T) {
	k := newTalk(t)
	k.runs(order(1, ""))
	k.says(uses("T", "Bash", `{"command":"ls"}`, ""), came("T", "a", `{"stdout":"","stderr":"","interrupted":true,"backgroundTaskId":"b1"}`, ""))
	k.wantTold("tool_call_update", `{"rawOutput":{"backgroundTaskId":"b1","interrupted":true,"stderr":"","stdout":""},"status":"completed","toolCallId":"T"}`)
}

// An agent that was started says nothing in this one's name; what it does is told, and makes no plan.
func TestTools_OfAgents(t *testing.T) {
	k := newTalk(t)
	k.runs(order(1, ""))
	k.say(`{"type":"assistant","message":{"id":"B","content":[{"type":"text","text":"inner"}]},"parent_tool_use_id":"T"}`)
	k.say(`{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"inner"}},"parent_tool_use_id":"T"}`)
	k.says(uses("U", "TodoWrite", `{"todos":[{"content":"one","status":"pending"}]}`, "T"))
	k.wantTold("agent_message_chunk")
	k.wantTold("plan")
	if n := len(k.told("tool_call")); n != 1 {
		t.Errorf("%d calls", n)
	}
}

// What is open at the turn's end is not told the end of.
func TestTools_Settle(t *testing.T) {
	k := newTalk(t)
	k.runs(order(1, ""))
	k.says(uses("T", "Bash", `{"command":"ls"}`, ""), results("error_during_execution", ""))
	k.wantTold("tool_call_update", `{"status":"failed","toolCallId":"T"}`)
	if a := k.About(); a.Open != 0 {
		t.Errorf("%+v", a)
	}
}

func TestPlan(t *testing.T) {
	entry := func(content, status string) string {
		return `{"content":"` + content + `","priority":"medium","status":"` + status + `"}`
	}
	k := newTalk(t)
	k.runs(order(1, ""))
	made := func(id, subject string) {
		k.says(uses("T"+id, "TaskCreate", `{"subject":"`+subject+`"}`, ""), came("T"+id, "", `{"task":{"id":"`+id+`","subject":"`+subject+`"}}`, ""))
	}
	changed := func(id, input, outcome string) {
		k.says(uses("U", "TaskUpdate", input, ""), came("U", "", `{"success":true,"taskId":"`+id+`"`+outcome+`}`, ""))
	}
	made("1", "one")
	made("2", "two")
	changed("1", `{"taskId":"1","status":"in_progress"}`, `,"statusChange":{"to":"in_progress"}`)
	changed("2", `{"taskId":"2","subject":"deux"}`, "")
	changed("1", `{"taskId":"1","status":"deleted"}`, `,"statusChange":{"to":"deleted"}`)
	changed("9", `{"taskId":"9","status":"completed"}`, `,"statusChange":{"to":"completed"}`)
	k.says(uses("V", "TaskUpdate", `{"taskId":"3"}`, ""), came("V", "", `{"success":false,"taskId":"3"}`, ""))
	k.says(uses("W", "TaskList", `{}`, ""), came("W", "", `{"tasks":[{"id":"2","subject":"deux","status":"pending"}]}`, ""))
	k.say(uses("X", "TodoWrite", `{"todos":[{"content":"a","status":"completed"}]}`, ""))
	k.wantTold("plan",
		`{"entries":[`+entry("one", "pending")+`]}`,
		`{"entries":[`+entry("one", "pending")+","+entry("two", "pending")+`]}`,
		`{"entries":[`+entry("one", "in_progress")+","+entry("two", "pending")+`]}`,
		`{"entries":[`+entry("one", "in_progress")+","+entry("deux", "pending")+`]}`,
		`{"entries":[`+entry("deux", "pending")+`]}`,
		`{"entries":[`+entry("deux", "pending")+","+entry("task 9", "completed")+`]}`,
		`{"entries":[`+entry("deux", "pending")+`]}`,
		`{"entries":[`+entry("a", "completed")+`]}`)
}
