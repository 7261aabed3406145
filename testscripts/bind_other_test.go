//go:build !linux

package testscripts

import "errors"

// bind mounts a file on itself, where that can be.
func bind(string) error { return errors.ErrUnsupported }

func unbind(string) error { return errors.ErrUnsupported }
