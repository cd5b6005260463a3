// media-load is the media half of many call participants: ICE, DTLS and SRTP for the benchmark of calls. Signalling is done by the
// harness, which speaks with this program in lines of JSON.
//
// It answers what a media server asks of a client and no more: packets that arrive are counted by their headers, which SRTP leaves
// readable, and not decrypted; there is no congestion control. So one core carries the clients of more than one core of media server.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/pion/datachannel"
	"github.com/pion/dtls/v3"
	"github.com/pion/dtls/v3/pkg/crypto/fingerprint"
	"github.com/pion/dtls/v3/pkg/crypto/selfsign"
	"github.com/pion/logging"
	"github.com/pion/rtp"
	"github.com/pion/sctp"
	"github.com/pion/srtp/v3"
	"github.com/pion/stun/v3"
)

type request struct {
	ID        int    `json:"id"`
	Do        string `json:"do"`
	Transport string `json:"transport"`
	// connect
	Ufrag    string `json:"ufrag"`
	Password string `json:"password"`
	Port     int    `json:"port"`
	Channels bool   `json:"dataChannels"`
	// send
	SSRC      uint32 `json:"ssrc"`
	Type      uint8  `json:"payloadType"`
	Bytes     int    `json:"bytes"`
	PerSecond int    `json:"perSecond"`
	ClockRate int    `json:"clockRate"`
}

type answer struct {
	ID          int    `json:"id"`
	Error       string `json:"error,omitempty"`
	Fingerprint string `json:"fingerprint,omitempty"`
	Received    uint64 `json:"received"`
	Lost        uint64 `json:"lost"`
	Bytes       uint64 `json:"bytes"`
	Streams     int    `json:"streams"`
	Sent        uint64 `json:"sent"`
}

// A consentEvery keeps the transport's ICE alive, as browsers do.
const (
	consentEvery   = 4 * time.Second
	connectTimeout = 20 * time.Second
)

// What every transport calls itself in ICE.
const (
	ownUfrag    = "bench"
	ownPassword = "bench-media-load-password"
)

// stream is one source as it arrives at one client.
type stream struct {
	begun           bool
	highest         uint64 // with the wraps of the 16-bit sequence number
	received, bytes uint64
	// At the last mark.
	markHighest, markReceived, markBytes uint64
}

type transport struct {
	socket    *net.UDPConn
	handshake chan []byte // DTLS packets
	ice       chan struct{}
	iceOnce   sync.Once
	request   []byte
	mu        sync.Mutex
	streams   map[uint32]*stream
	sending   sync.Mutex
	out       *srtp.Context
	closed    chan struct{}
}

var (
	certificate tls.Certificate
	mu          sync.Mutex
	transports  = map[string]*transport{}
	sent        uint64
	sentMark    uint64
	output      = json.NewEncoder(os.Stdout)
	outputMu    sync.Mutex
)

func main() {
	var err error
	if certificate, err = selfsign.GenerateSelfSigned(); err != nil {
		panic(err)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<16), 1<<20)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			panic(err)
		}
		go func() {
			a, err := run(r)
			a.ID = r.ID
			if err != nil {
				a.Error = err.Error()
			}
			outputMu.Lock()
			defer outputMu.Unlock()
			_ = output.Encode(a)
		}()
	}
}

func run(r request) (answer, error) {
	switch r.Do {
	case "hello":
		print, err := fingerprint.Fingerprint(certificate.Leaf, 5 /* crypto.SHA256 */)
		return answer{Fingerprint: print}, err
	case "connect":
		return answer{}, connect(r)
	case "send":
		t, err := find(r.Transport)
		if err == nil {
			go t.send(r)
		}
		return answer{}, err
	case "close":
		t, err := find(r.Transport)
		if err == nil {
			mu.Lock()
			delete(transports, r.Transport)
			mu.Unlock()
			close(t.closed)
			_ = t.socket.Close()
		}
		return answer{}, err
	case "mark":
		count(true)
		return answer{}, nil
	case "count":
		return count(false), nil
	}
	return answer{}, fmt.Errorf("unknown: %s", r.Do)
}

func find(id string) (*transport, error) {
	mu.Lock()
	defer mu.Unlock()
	if t := transports[id]; t != nil {
		return t, nil
	}
	return nil, errors.New("no such transport")
}

// connect makes a transport: ICE towards a server that is ICE lite, then DTLS as its client.
func connect(r request) error {
	address := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: r.Port}
	socket, err := net.DialUDP("udp4", nil, address)
	if err != nil {
		return err
	}
	_ = socket.SetReadBuffer(1 << 20)
	t := &transport{
		socket: socket, handshake: make(chan []byte, 64), ice: make(chan struct{}),
		streams: map[uint32]*stream{}, closed: make(chan struct{}),
	}
	binding, err := stun.Build(
		stun.TransactionID, stun.BindingRequest, stun.NewUsername(r.Ufrag+":"+ownUfrag),
		stun.RawAttribute{Type: stun.AttrPriority, Value: []byte{0x7e, 0, 0, 0xff}},
		stun.RawAttribute{Type: stun.AttrICEControlling, Value: []byte{1, 2, 3, 4, 5, 6, 7, 8}},
		stun.RawAttribute{Type: stun.AttrUseCandidate},
		stun.NewShortTermIntegrity(r.Password), stun.Fingerprint,
	)
	if err != nil {
		return err
	}
	t.request = binding.Raw
	mu.Lock()
	transports[r.Transport] = t
	mu.Unlock()
	go t.read()
	go t.consent()
	select {
	case <-t.ice:
	case <-time.After(connectTimeout):
		return errors.New("ICE: no answer")
	}
	conn, err := dtls.Client(dtlsConn{t}, address, &dtls.Config{
		Certificates:           []tls.Certificate{certificate},
		InsecureSkipVerify:     true,
		SRTPProtectionProfiles: []dtls.SRTPProtectionProfile{dtls.SRTP_AEAD_AES_128_GCM, dtls.SRTP_AES128_CM_HMAC_SHA1_80},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		return err
	}
	profile, _ := conn.SelectedSRTPProtectionProfile()
	state, _ := conn.ConnectionState()
	keys := &srtp.Config{Profile: srtp.ProtectionProfile(profile)}
	if err := keys.ExtractSessionKeysFromDTLS(&state, true); err != nil {
		return err
	}
	t.out, err = srtp.CreateContext(keys.Keys.LocalMasterKey, keys.Keys.LocalMasterSalt, keys.Profile)
	if r.Channels {
		go acceptChannels(conn)
	}
	return err
}

// acceptChannels answers the data channels that the server opens: to LiveKit nobody has joined without them. Nothing is sent over them.
func acceptChannels(conn net.Conn) {
	log := logging.NewDefaultLoggerFactory()
	association, err := sctp.Client(sctp.Config{NetConn: conn, LoggerFactory: log})
	for err == nil {
		_, err = datachannel.Accept(association, &datachannel.Config{LoggerFactory: log})
	}
}

// consent asks until it is answered, and then often enough not to be forgotten.
func (t *transport) consent() {
	every := 50 * time.Millisecond
	for {
		_, _ = t.socket.Write(t.request)
		select {
		case <-t.closed:
			return
		case <-time.After(every):
		}
		select {
		case <-t.ice:
			every = consentEvery
		default:
			every *= 2
		}
	}
}

// answer is to a check of the server's own: LiveKit makes them although it is ICE lite, and takes no pair before.
func (t *transport) answer(raw []byte) {
	check := stun.Message{Raw: append([]byte(nil), raw...)}
	if check.Decode() != nil {
		return
	}
	server := t.socket.RemoteAddr().(*net.UDPAddr)
	reply, err := stun.Build(
		stun.NewTransactionIDSetter(check.TransactionID), stun.BindingSuccess,
		&stun.XORMappedAddress{IP: server.IP, Port: server.Port},
		stun.NewShortTermIntegrity(ownPassword), stun.Fingerprint,
	)
	if err == nil {
		_, _ = t.socket.Write(reply.Raw)
	}
}

// read tells packets apart by their first byte (RFC 7983).
func (t *transport) read() {
	buffer := make([]byte, 2048)
	for {
		n, err := t.socket.Read(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || n == 0 {
			continue // Told that nobody listened there a moment ago.
		}
		switch first := buffer[0]; {
		case first == 0 && buffer[1] == 1:
			t.answer(buffer[:n])
		case first < 4:
			t.iceOnce.Do(func() { close(t.ice) })
		case first >= 20 && first < 64:
			select {
			case t.handshake <- append([]byte(nil), buffer[:n]...):
			default: // It is repeated.
			}
		case first >= 128 && first < 192 && n >= 12 && (buffer[1] < 192 || buffer[1] > 223):
			t.arrived(binary.BigEndian.Uint32(buffer[8:]), binary.BigEndian.Uint16(buffer[2:]), n)
		}
	}
}

func (t *transport) arrived(ssrc uint32, sequence uint16, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.streams[ssrc]
	if s == nil {
		s = &stream{}
		t.streams[ssrc] = s
	}
	if !s.begun {
		s.begun = true
		s.highest = uint64(sequence) + 1<<16
		s.markHighest = s.highest - 1
	} else {
		if step := int16(sequence - uint16(s.highest)); step > 0 {
			s.highest += uint64(step)
		}
	}
	s.received++
	s.bytes += uint64(n)
}

func count(mark bool) answer {
	mu.Lock()
	defer mu.Unlock()
	a := answer{Sent: sent - sentMark}
	if mark {
		sentMark = sent
	}
	for _, t := range transports {
		t.mu.Lock()
		for _, s := range t.streams {
			expected, received := s.highest-s.markHighest, s.received-s.markReceived
			if expected > received {
				a.Lost += expected - received
			}
			if received > 0 {
				a.Streams++
			}
			a.Received += received
			a.Bytes += s.bytes - s.markBytes
			if mark {
				s.markHighest, s.markReceived, s.markBytes = s.highest, s.received, s.bytes
			}
		}
		t.mu.Unlock()
	}
	return a
}

// send sends packets at an even pace until the transport is closed. Each is a key frame of VP8 as far as a media server looks.
func (t *transport) send(r request) {
	payload := make([]byte, r.Bytes)
	payload[0] = 0x10
	header := rtp.Header{Version: 2, PayloadType: r.Type, SSRC: r.SSRC, Marker: true}
	step := uint32(r.ClockRate / r.PerSecond)
	gap := time.Second / time.Duration(r.PerSecond)
	packet := make([]byte, 0, 1500)
	for next := time.Now(); ; next = next.Add(gap) {
		select {
		case <-t.closed:
			return
		case <-time.After(time.Until(next)):
		}
		header.SequenceNumber++
		header.Timestamp += step
		plain, err := (&rtp.Packet{Header: header, Payload: payload}).Marshal()
		if err != nil {
			panic(err)
		}
		t.sending.Lock()
		packet, err = t.out.EncryptRTP(packet[:0], plain, nil)
		if err == nil {
			_, err = t.socket.Write(packet)
		}
		t.sending.Unlock()
		if err == nil {
			mu.Lock()
			sent++
			mu.Unlock()
		}
	}
}

// dtlsConn is the part of a transport that DTLS sees.
type dtlsConn struct{ t *transport }

func (c dtlsConn) ReadFrom(p []byte) (int, net.Addr, error) {
	select {
	case packet := <-c.t.handshake:
		return copy(p, packet), c.t.socket.RemoteAddr(), nil
	case <-c.t.closed:
		return 0, nil, net.ErrClosed
	}
}
func (c dtlsConn) WriteTo(p []byte, _ net.Addr) (int, error) { return c.t.socket.Write(p) }
func (c dtlsConn) Close() error                              { return nil }
func (c dtlsConn) LocalAddr() net.Addr                       { return c.t.socket.LocalAddr() }
func (c dtlsConn) SetDeadline(time.Time) error               { return nil }
func (c dtlsConn) SetReadDeadline(time.Time) error           { return nil }
func (c dtlsConn) SetWriteDeadline(time.Time) error          { return nil }
