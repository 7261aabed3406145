package main

// fionread asks how many bytes can be read: _IOR('f', 127, int) of <sys/filio.h>.
const fionread = 0x4004667f
