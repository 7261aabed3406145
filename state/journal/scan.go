package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Scan returns the committed events of one type, in order, from all segments that may hold one not older than since, while
// the writer may be writing; so older ones may be among them. It decodes no others, and holds a segment at a time.
//
// A segment is passed over if the next one begins with an event older than since: events are written in the order of
// their times, as far as the clock never goes back.
func Scan(dir string, since time.Time, kind string) ([]Event, error) {
	firsts, err := segments(dir)
	if err != nil {
		return nil, err
	}
	var s scanner
	for _, first := range newer(dir, firsts, since) {
		if err := s.segment(filepath.Join(dir, segmentName(first)), kind); err != nil {
			return nil, fmt.Errorf("scan journal: %w", err)
		}
	}
	return s.found, nil
}

// newer are the segments behind the last that begins before since, and that one.
func newer(dir string, firsts []uint64, since time.Time) []uint64 {
	for i, first := range slices.Backward(firsts) {
		if begin, ok := begins(filepath.Join(dir, segmentName(first))); ok && begin.Before(since) {
			return firsts[i:]
		}
	}
	return firsts
}

// begins is the time of a segment's first event. It is not known of an empty segment, or when the line is damaged.
func begins(path string) (time.Time, bool) {
	f, err := os.Open(path)
	if err != nil {
		return time.Time{}, false
	}
	defer f.Close()
	head := make([]byte, 4<<10)
	for {
		n, err := f.ReadAt(head, 0)
		if end := bytes.IndexByte(head[:n], '\n'); end >= 0 {
			e, err := parse(head[:end])
			return e.Time, err == nil
		}
		if err != nil {
			return time.Time{}, false
		}
		head = make([]byte, 2*len(head))
	}
}

// scanner has what was found, and the last segment's bytes.
type scanner struct {
	data  []byte
	found []Event
}

func (s *scanner) segment(path, kind string) error {
	f, end, err := openCommitted(path)
	if f == nil {
		return err
	}
	defer f.Close()
	s.data = slices.Grow(s.data[:0], int(end))[:end]
	if _, err := f.ReadAt(s.data, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	s.search(kind)
	return nil
}

// search looks for the mark in all lines at once.
func (s *scanner) search(kind string) {
	mark := marks([]string{kind})[0]
	for rest := s.data; ; {
		at := bytes.Index(rest, mark)
		if at < 0 {
			return
		}
		begin, end := bytes.LastIndexByte(rest[:at], '\n')+1, at+bytes.IndexByte(rest[at:], '\n')
		if e, err := parse(rest[begin:end]); err == nil && e.Type == kind {
			s.found = append(s.found, e)
		}
		rest = rest[end+1:]
	}
}
