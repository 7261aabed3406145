package rpc

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerUID is the user who connected, as the kernel noted it then (LOCAL_PEERCRED).
func peerUID(conn net.Conn) (uid int, err error) {
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return -1, errForeign
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return -1, err
	}
	var cred *unix.Xucred
	if e := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	}); e != nil {
		return -1, e
	}
	if err != nil {
		return -1, err
	}
	return int(cred.Uid), nil
}
