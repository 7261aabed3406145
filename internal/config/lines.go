package config

import (
	"errors"

	"github.com/BurntSushi/toml"
)

// errHere is how locator makes the library say where it is.
var errHere = errors.New("here")

// locator refuses whatever it is given. The library keeps the line of every key to itself and tells it only in
// errors about values, so an error is what we ask for.
type locator struct{}

// UnmarshalTOML implements toml.Unmarshaler.
func (locator) UnmarshalTOML(any) error { return errHere }

// lineOf returns the line on which a key stands, 0 if it does not.
func lineOf(text string, key toml.Key) int {
	return linesOf(text, []toml.Key{key})[key.String()]
}

// linesOf returns the lines of keys, by their dotted names.
func linesOf(text string, keys []toml.Key) map[string]int {
	found := map[string]int{}
	var top map[string]toml.Primitive
	meta, err := toml.Decode(text, &top)
	if err != nil {
		return found
	}
	for _, key := range keys {
		if line := locate(&meta, top, key); line > 0 {
			found[key.String()] = line
		}
	}
	return found
}

// locate goes down the tables of a key and asks where the last one is.
func locate(meta *toml.MetaData, table map[string]toml.Primitive, key toml.Key) int {
	value, ok := table[key[0]]
	if !ok {
		return 0
	}
	if len(key) == 1 {
		var here toml.ParseError
		errors.As(meta.PrimitiveDecode(value, &locator{}), &here)
		return here.Position.Line
	}
	var inner map[string]toml.Primitive
	if meta.PrimitiveDecode(value, &inner) != nil {
		return 0
	}
	return locate(meta, inner, key[1:])
}
