package providertest

import (
	"os"
	"strings"
	"testing"
)

// The document has a row for each cell: it was written by this suite and not by an earlier one. What is in the rows
// only a run on the real agents can tell (testscripts/agents).
func TestCells_AreInTheDocument(t *testing.T) {
	data, err := os.ReadFile("../../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "| ") {
			rows = append(rows, line)
		}
	}
	rows = rows[min(2, len(rows)):] // without the head
	if len(rows) != len(cells) {
		t.Errorf("%d rows, %d cells: go test -tags agents ./testscripts/agents -run TestConform -update", len(rows), len(cells))
	}
	for i, c := range cells[:min(len(rows), len(cells))] {
		if !strings.HasPrefix(rows[i], "| "+c.name+" | "+c.means+" |") {
			t.Errorf("row %d is no %q: %s", i+1, c.name, rows[i])
		}
	}
}

func TestTable(t *testing.T) {
	played := map[string]string{}
	for _, c := range cells {
		played[c.name] = "yes"
	}
	played["plan"] = "no: it makes none"
	r := Report{Agent: "A 1", Played: played}
	if !r.Whole() {
		t.Error("each cell was played")
	}
	table := Table([]Report{r, r})
	for _, line := range []string{
		"| what | that is | A 1 | A 1 |\n| --- | --- | --- | --- |\n",
		"| plan | the steps are told, with how far each is | no: it makes none | no: it makes none |\n",
	} {
		if !strings.Contains(table, line) {
			t.Errorf("no %q in\n%s", line, table)
		}
	}
	if delete(played, "plan"); r.Whole() {
		t.Error("one cell failed")
	}
}

func TestCells_HaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range cells {
		if seen[c.name] || c.means == "" || strings.Contains(c.name+c.means, "|") {
			t.Errorf("%q", c.name)
		}
		seen[c.name] = true
	}
}
