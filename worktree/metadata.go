package worktree

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
)

// The commit of the state has in its tree:
//
//	git/...           state files of the git directory, byte for byte
//	index/0/...       the tree of the index, so that what is only staged, and the trees that its cache names, stay
//	index/1..3/...    what is unmerged, by stage
//	undo/1..3/...     what was unmerged before it was resolved
//	auto-merge/...    the tree that AUTO_MERGE names
//	manifest          see header and piece
const (
	inGit      = "git/"
	inIndex    = "index/"
	inUndo     = "undo/"
	autoMerge  = "auto-merge"
	inManifest = "manifest"
)

// answers is what git is asked only when there is something to keep.
type answers struct {
	headTree string
	undo     []entry
	commits  []string // that the state names
	auto     string   // the tree of AUTO_MERGE
}

func (s *survey) ask(ctx context.Context) (a answers, err error) {
	err = together(
		func() (err error) { a.headTree, err = s.headTree(ctx); return err },
		func() (err error) { a.undo, err = s.undone(ctx); return err },
		func() (err error) { a.commits, a.auto, err = s.existing(ctx); return err },
	)
	return a, err
}

func (s *survey) headTree(ctx context.Context) (string, error) {
	if s.repo.Head == "" {
		return "", nil
	}
	out, err := git(ctx, s.repo.TopLevel, "rev-parse", s.repo.Head+"^{tree}")
	return strings.TrimSpace(string(out)), err
}

// undone reads what the index remembers of resolved conflicts, as "mode oid stage TAB path".
func (s *survey) undone(ctx context.Context) (all []entry, err error) {
	out, err := git(ctx, s.repo.TopLevel, "ls-files", "--resolve-undo", "-z")
	for _, line := range split(string(out)) {
		e, parseErr := parseEntry("H " + line)
		if parseErr != nil {
			return nil, parseErr
		}
		all = append(all, e)
	}
	return all, err
}

// existing returns the commits that the state files name, as far as the repository has them, and AUTO_MERGE's tree.
func (s *survey) existing(ctx context.Context) (commits []string, auto string, err error) {
	words := named(s.repo.GitDir, s.state)
	if len(words) == 0 {
		return nil, "", nil
	}
	out, err := gitInput(ctx, s.repo.TopLevel, strings.NewReader(strings.Join(words, "\n")+"\n"),
		"cat-file", "--batch-check=%(objecttype) %(objectname)")
	seen := map[string]bool{s.repo.Head: true}
	for line := range strings.Lines(string(out)) {
		switch kind, oid, _ := strings.Cut(strings.TrimSpace(line), " "); {
		case kind == "commit" && !seen[oid]:
			seen[oid], commits = true, append(commits, oid)
		case kind == "tree" && oid == s.autoMerge():
			auto = oid
		}
	}
	return commits, auto, err
}

func (s *survey) autoMerge() string { return firstWord(filepath.Join(s.repo.GitDir, "AUTO_MERGE")) }

// commitState commits the index and the state of the git directory.
func (p *picture) commitState(ref string, a answers) (int, error) {
	files, err := p.stateBlobs()
	if err != nil {
		return 0, err
	}
	manifest, err := writeManifest(header{manifestVersion, p.repo.Head, p.repo.Branch, filepath.Base(p.repo.GitDir)}, p.pieces)
	if err != nil {
		return 0, err
	}
	files[inManifest] = p.to.text(manifest)
	mark := p.to.commit(ref, "pintle: the index and the state of "+p.repo.GitDir)
	for _, parent := range a.commits {
		p.to.printf("merge %s\n", parent)
	}
	p.putIndex(a)
	for _, name := range sorted(files) {
		p.to.put(regular, files[name], name)
	}
	return mark, nil
}

// putIndex puts the index as trees, HEAD's with all that differs. It makes the very trees that the cache in the index
// names, which gc takes for granted and would not find otherwise.
func (p *picture) putIndex(a answers) {
	if a.headTree != "" {
		p.to.set("040000", a.headTree, inIndex+"0")
	}
	for _, c := range p.staged {
		if c.status == 'D' || c.status == 'U' {
			p.to.drop(inIndex + "0/" + c.path)
		}
	}
	for _, c := range p.staged {
		if c.status != 'D' && c.status != 'U' {
			p.to.set(c.mode, c.oid, inIndex+"0/"+c.path)
		}
	}
	for _, e := range p.entries {
		if e.stage != "0" {
			p.to.set(e.mode, e.oid, inIndex+e.stage+"/"+e.path)
		}
	}
	for _, e := range a.undo {
		p.to.set(e.mode, e.oid, inUndo+e.stage+"/"+e.path)
	}
	if a.auto != "" {
		p.to.set("040000", a.auto, autoMerge)
	}
}

// stateBlobs stores the state files and returns their marks.
func (p *picture) stateBlobs() (map[string]int, error) {
	reader, err := openReader(p.repo.GitDir, nil)
	if err != nil {
		return nil, err
	}
	defer reader.close()
	marks := map[string]int{}
	for _, name := range p.state {
		mark, err := p.stateBlob(reader, name)
		if vanished(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		marks[inGit+name] = mark
	}
	return marks, nil
}

// stateBlob reads a state file as a whole first: one that changes meanwhile is read again.
func (p *picture) stateBlob(from *reader, name string) (int, error) {
	var got bytes.Buffer
	err := from.content(name, sink{
		begin: func(fs.FileInfo) (io.Writer, error) { got.Reset(); return &got, nil },
		end:   func() error { return nil },
	})
	if err != nil {
		return 0, err
	}
	return p.to.text(got.Bytes()), nil
}
