module parley.bench/media-load

go 1.24.0

require (
	github.com/pion/datachannel v1.6.2
	github.com/pion/dtls/v3 v3.1.4
	github.com/pion/logging v0.2.4
	github.com/pion/rtp v1.10.2
	github.com/pion/sctp v1.10.3
	github.com/pion/srtp/v3 v3.0.12
	github.com/pion/stun/v3 v3.1.6
)

require (
	github.com/pion/randutil v0.1.0 // indirect
	github.com/pion/rtcp v1.2.16 // indirect
	github.com/pion/transport/v4 v4.0.2 // indirect
	github.com/wlynxg/anet v0.0.5 // indirect
	golang.org/x/crypto v0.48.0 // indirect
	golang.org/x/sys v0.41.0 // indirect
)
