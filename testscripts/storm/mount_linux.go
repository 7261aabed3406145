package main

import "syscall"

// mountSmall puts a disk at dir that a round's records fit on, and that is filled in an instant.
func mountSmall(dir string) error {
	return syscall.Mount("storm", dir, "tmpfs", 0, "size=192m,mode=0700")
}

func unmount(dir string) error { return syscall.Unmount(dir, 0) }
