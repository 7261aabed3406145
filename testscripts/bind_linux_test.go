package testscripts

import "syscall"

// bind mounts a file on itself: nobody can put another in its place then.
func bind(file string) error { return syscall.Mount(file, file, "", syscall.MS_BIND, "") }

func unbind(file string) error { return syscall.Unmount(file, syscall.MNT_DETACH) }
