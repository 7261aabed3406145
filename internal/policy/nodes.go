package policy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// node takes in one part of a line. What is not known here to run nothing but what is found in it makes the line opaque: shells
// evaluate more than they show.
func (c *commands) node(n syntax.Node, depth int) {
	switch n := n.(type) {
	case nil, *syntax.File, *syntax.Word, *syntax.Lit, *syntax.SglQuoted, *syntax.Subshell, *syntax.Block, *syntax.IfClause, *syntax.WhileClause,
		*syntax.BinaryCmd, *syntax.CaseClause, *syntax.CaseItem, *syntax.TimeClause, *syntax.ProcSubst, *syntax.WordIter,
		*syntax.UnaryTest, *syntax.BinaryTest, *syntax.ParenTest:
	case *syntax.Stmt:
		c.opaque = c.opaque || n.Coprocess || n.Disown
	case *syntax.CallExpr:
		c.writes = c.writes || len(n.Assigns) > 0
		c.call(n.Args, depth)
	case *syntax.Redirect:
		c.writes = c.writes || !harmless(n)
		c.opaque = c.opaque || !ends(n)
	case *syntax.FuncDecl, *syntax.ForClause, *syntax.DeclClause:
		c.writes = true
	default:
		c.expansion(n)
	}
}

// expansion takes in what a shell makes something else of.
func (c *commands) expansion(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.DblQuoted:
		c.opaque = c.opaque || n.Dollar
	case *syntax.CmdSubst:
		c.opaque = c.opaque || n.TempFile || n.ReplyVar
	case *syntax.Assign:
		c.writes = true
		c.opaque = c.opaque || n.Index != nil || n.Array != nil || n.Naked && !tame(n.Value)
	case *syntax.TestClause:
		c.opaque = c.opaque || !tests(n)
	case *syntax.ParamExp:
		c.parameter(n)
	default: // comments too: of what ends one shells think otherwise
		c.opaque = true
	}
}

// parameter takes in an expansion of a variable. Indices, and what is reached by a name in a variable, are evaluated once more.
func (c *commands) parameter(n *syntax.ParamExp) {
	zsh := n.Flags != nil || n.NestedParam != nil || n.IsSet || len(n.Modifiers) > 0
	switch {
	case zsh, n.Excl, n.Width, n.Index != nil, n.Slice != nil, n.Repl != nil, n.Names != 0:
		c.opaque = true
	case n.Exp == nil:
	case slices.Contains([]syntax.ParExpOperator{syntax.AssignUnset, syntax.AssignUnsetOrNull}, n.Exp.Op):
		c.writes = true
	case slices.Contains(cutting, n.Exp.Op):
		c.opaque = c.opaque || !tame(n.Exp.Word)
	case !slices.Contains(instead, n.Exp.Op):
		c.opaque = true
	}
}

var (
	instead = []syntax.ParExpOperator{
		syntax.AlternateUnset, syntax.AlternateUnsetOrNull, syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.ErrorUnset, syntax.ErrorUnsetOrNull,
	}
	cutting = []syntax.ParExpOperator{syntax.RemSmallSuffix, syntax.RemLargeSuffix, syntax.RemSmallPrefix, syntax.RemLargePrefix}
)

// tame says that a word, as it is written, has nothing in it that a shell would evaluate, now or where it is taken for a number.
func tame(w *syntax.Word) bool {
	return w == nil || !slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool {
		switch p := p.(type) {
		case *syntax.Lit:
			return strings.ContainsAny(p.Value, "[($`")
		case *syntax.SglQuoted:
			return p.Dollar || strings.ContainsAny(p.Value, "[($`")
		}
		return true
	})
}

// tests says that all words of a test are tame.
func tests(n *syntax.TestClause) bool {
	ok := true
	syntax.Walk(n, func(n syntax.Node) bool {
		if w, is := n.(*syntax.Word); is {
			ok = ok && tame(w)
		}
		return true
	})
	return ok
}

// ends says that a text which is given to a command ends where it seems to, for all shells.
func ends(r *syntax.Redirect) bool {
	if r.Hdoc == nil {
		return true
	}
	return !slices.ContainsFunc(r.Word.Parts, func(p syntax.WordPart) bool {
		switch p := p.(type) {
		case *syntax.Lit:
			return strings.ContainsAny(p.Value, "\\$`\r")
		case *syntax.SglQuoted:
			return p.Dollar || strings.ContainsAny(p.Value, "\\\r")
		}
		return true
	})
}
