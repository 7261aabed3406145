package rpc

import "golang.org/x/sys/unix"

// maxPath is the longest socket path in bytes: sun_path is 108 with its NUL (unix(7)).
const maxPath = 107

// credentials is the user at the other end, as the kernel noted it at connect or bind (SO_PEERCRED).
func credentials(fd int) (uid int, err error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return -1, err
	}
	return int(cred.Uid), nil
}
