// call-client joins a call of Parley with nothing but its documents (docs/calls.md, "A client of your own") and pion's ORTC API: it sends silence as
// its microphone and counts what it receives of the others.
//
//	go run . -url http://localhost:3000 -env env_... -token <USER_TOKEN> -call call_... [-packets 50]
//
// It prints a line of JSON for each step, one when it has received that many packets of a source, and ends with the call.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
	"github.com/pion/ice/v4"
	"github.com/pion/webrtc/v4"
	"github.com/pion/webrtc/v4/pkg/media"
)

// What the frames carry: the schemas of the AsyncAPI document, as far as this program needs them.
type (
	codec struct {
		Kind                 string         `json:"kind,omitempty"`
		MimeType             string         `json:"mimeType"`
		PreferredPayloadType uint8          `json:"preferredPayloadType,omitempty"`
		PayloadType          uint8          `json:"payloadType,omitempty"`
		ClockRate            uint32         `json:"clockRate"`
		Channels             uint16         `json:"channels,omitempty"`
		Parameters           map[string]any `json:"parameters,omitempty"`
	}
	rtpCapabilities struct {
		Codecs []codec `json:"codecs"`
	}
	rtpParameters struct {
		Codecs    []codec `json:"codecs"`
		Encodings []struct {
			SSRC uint32 `json:"ssrc"`
		} `json:"encodings"`
	}
	dtlsParameters struct {
		Role         string `json:"role"`
		Fingerprints []struct {
			Algorithm string `json:"algorithm"`
			Value     string `json:"value"`
		} `json:"fingerprints"`
	}
	transportInfo struct {
		ID            string `json:"id"`
		IceParameters struct {
			UsernameFragment string `json:"usernameFragment"`
			Password         string `json:"password"`
			IceLite          bool   `json:"iceLite"`
		} `json:"iceParameters"`
		IceCandidates []struct {
			Foundation string `json:"foundation"`
			Priority   uint32 `json:"priority"`
			Address    string `json:"address"`
			Protocol   string `json:"protocol"`
			Port       uint16 `json:"port"`
			Type       string `json:"type"`
		} `json:"iceCandidates"`
		DtlsParameters dtlsParameters `json:"dtlsParameters"`
	}
	producer struct {
		ID     string `json:"id"`
		UserID string `json:"userId"`
		Source string `json:"source"`
		Kind   string `json:"kind"`
	}
	consumer struct {
		ID            string        `json:"id"`
		ProducerID    string        `json:"producerId"`
		Kind          string        `json:"kind"`
		RtpParameters rtpParameters `json:"rtpParameters"`
	}
	frame struct {
		T       string          `json:"t"`
		Re      string          `json:"re"`
		D       json.RawMessage `json:"d"`
		Code    string          `json:"code"`
		Message string          `json:"message"`
	}
)

var (
	service = flag.String("url", "http://localhost:3000", "the service")
	env     = flag.String("env", "", "the environment's id, which only development tokens need")
	token   = flag.String("token", "", "the user's token")
	callID  = flag.String("call", "", "the call to join")
	packets = flag.Int("packets", 50, "how many packets of a source are enough")
	limit   = flag.Duration("limit", time.Minute, "how long this may take")
)

func main() {
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), *limit)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func say(step string, more map[string]any) {
	line := map[string]any{"step": step}
	for name, value := range more {
		line[name] = value
	}
	_ = json.NewEncoder(os.Stdout).Encode(line)
}

func run(ctx context.Context) error {
	s, err := connect(ctx)
	if err != nil {
		return err
	}
	defer s.conn.CloseNow()
	say("connected", map[string]any{"sessionId": s.sessionID})

	// 1. Join over REST; sessionId goes into the query.
	var joined struct {
		Media struct {
			Device          string          `json:"device"`
			RtpCapabilities rtpCapabilities `json:"rtpCapabilities"`
		} `json:"media"`
	}
	path := "/v1/calls/" + url.PathEscape(*callID) + "/join?sessionId=" + url.QueryEscape(s.sessionID)
	if err := post(ctx, path, &joined); err != nil {
		return err
	}

	// Of the service's codecs this program takes those that every service has, with the payload types that the service gives them.
	var codecs []codec
	for _, c := range joined.Media.RtpCapabilities.Codecs {
		if strings.EqualFold(c.MimeType, webrtc.MimeTypeOpus) || strings.EqualFold(c.MimeType, webrtc.MimeTypeVP8) {
			codecs = append(codecs, c)
		}
	}
	if len(codecs) != 2 {
		return errors.New("the service offers no Opus or no VP8")
	}

	// 2. Open the media: two transports, and who sends what already.
	var opened struct {
		Send, Recv transportInfo
		Producers  []producer
	}
	open := map[string]any{"device": joined.Media.Device, "rtpCapabilities": rtpCapabilities{codecs}}
	if err := s.ask(ctx, "call.open", open, &opened); err != nil {
		return err
	}
	api, err := newAPI(codecs)
	if err != nil {
		return err
	}
	recv, err := s.transport(ctx, api, opened.Recv)
	if err != nil {
		return fmt.Errorf("receiving: %w", err)
	}
	send, err := s.transport(ctx, api, opened.Send)
	if err != nil {
		return fmt.Errorf("sending: %w", err)
	}
	say("media", nil)

	// 3. Send a microphone, and receive what the others send.
	if err := s.produce(ctx, api, send, codecs[0]); err != nil {
		return err
	}
	enough := make(chan map[string]any, 200)
	failed := make(chan error, 200)
	wanted := opened.Producers
	for {
		for _, one := range wanted {
			if err := s.consume(ctx, api, recv, one, enough, failed); err != nil {
				return err
			}
		}
		select {
		case found := <-enough:
			wanted = nil
			say("received", found)
		case <-s.over:
			say("ended", nil)
			return nil
		case err := <-failed:
			return err
		case next := <-s.producers:
			wanted = []producer{next}
		case <-s.ended:
			return fmt.Errorf("the socket closed: %w", s.err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// post calls the REST API as the user.
func post(ctx context.Context, path string, answer any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(*service, "/")+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+*token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("POST %s: %s: %s", path, response.Status, bytes.TrimSpace(body))
	}
	return json.Unmarshal(body, answer)
}

// socket is the chat socket: requests with their answers, and the sources that others begin to send.
type socket struct {
	conn      *websocket.Conn
	sessionID string
	mu        sync.Mutex
	last      int
	waiting   map[string]chan frame
	overOnce  sync.Once
	producers chan producer
	over      chan struct{} // closed when the call is over, here or for everybody
	ended     chan struct{}
	err       error
}

func connect(ctx context.Context) (*socket, error) {
	address := "ws" + strings.TrimPrefix(strings.TrimRight(*service, "/"), "http") + "/v1?env=" + url.QueryEscape(*env)
	conn, _, err := websocket.Dial(ctx, address, &websocket.DialOptions{Subprotocols: []string{"chat.v1"}})
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(1 << 20)
	s := &socket{
		conn: conn, waiting: map[string]chan frame{}, producers: make(chan producer, 200),
		over: make(chan struct{}), ended: make(chan struct{}),
	}
	if err := wsjson.Write(ctx, conn, map[string]any{"t": "auth", "id": "0", "d": map[string]any{"token": *token}}); err != nil {
		return nil, err
	}
	for s.sessionID == "" {
		var f frame
		if err := wsjson.Read(ctx, conn, &f); err != nil {
			return nil, fmt.Errorf("auth: %w", err)
		}
		if f.T == "hello" {
			var hello struct{ SessionID string }
			if err := json.Unmarshal(f.D, &hello); err != nil {
				return nil, err
			}
			s.sessionID = hello.SessionID
		}
	}
	go s.read(ctx)
	return s, nil
}

func (s *socket) read(ctx context.Context) {
	defer close(s.ended)
	for {
		var f frame
		if s.err = wsjson.Read(ctx, s.conn, &f); s.err != nil {
			return
		}
		switch f.T {
		case "ack", "error":
			s.mu.Lock()
			answer := s.waiting[f.Re]
			delete(s.waiting, f.Re)
			s.mu.Unlock()
			if answer != nil {
				answer <- f
			}
		case "hb": // A heartbeat, which wants an answer.
			_ = wsjson.Write(ctx, s.conn, map[string]any{"t": "hb", "d": map[string]any{}})
		case "call.ended":
			var d struct{ Call struct{ ID string } }
			if json.Unmarshal(f.D, &d) == nil && d.Call.ID == *callID {
				s.overOnce.Do(func() { close(s.over) })
			}
		case "call.producer":
			var d struct {
				CallID   string
				Producer producer
				Closed   bool
			}
			if json.Unmarshal(f.D, &d) == nil && d.CallID == *callID && !d.Closed {
				select {
				case s.producers <- d.Producer:
				default: // More sources than one participant receives.
				}
			}
		}
	}
}

// ask sends a frame of the call and waits for its ack.
func (s *socket) ask(ctx context.Context, t string, d map[string]any, ack any) error {
	d["callId"] = *callID
	answer := make(chan frame, 1)
	s.mu.Lock()
	s.last++
	id := strconv.Itoa(s.last)
	s.waiting[id] = answer
	s.mu.Unlock()
	if err := wsjson.Write(ctx, s.conn, map[string]any{"t": t, "id": id, "d": d}); err != nil {
		return err
	}
	select {
	case f := <-answer:
		if f.T == "error" {
			return fmt.Errorf("%s: %s: %s", t, f.Code, f.Message)
		}
		if ack == nil {
			return nil
		}
		return json.Unmarshal(f.D, ack)
	case <-s.ended:
		return fmt.Errorf("%s: the socket closed: %w", t, s.err)
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", t, ctx.Err())
	}
}

func newAPI(codecs []codec) (*webrtc.API, error) {
	engine := &webrtc.MediaEngine{}
	for _, c := range codecs {
		kind := webrtc.RTPCodecTypeAudio
		if c.Kind == "video" {
			kind = webrtc.RTPCodecTypeVideo
		}
		err := engine.RegisterCodec(webrtc.RTPCodecParameters{
			RTPCodecCapability: webrtc.RTPCodecCapability{MimeType: c.MimeType, ClockRate: c.ClockRate, Channels: c.Channels},
			PayloadType:        webrtc.PayloadType(c.PreferredPayloadType),
		}, kind)
		if err != nil {
			return nil, err
		}
	}
	settings := webrtc.SettingEngine{}
	settings.SetIncludeLoopbackCandidate(true)
	settings.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	return webrtc.NewAPI(webrtc.WithMediaEngine(engine), webrtc.WithSettingEngine(settings)), nil
}

// transport connects one of the two transports: DTLS parameters to the server, then ICE as the controlling side, then DTLS as the client.
func (s *socket) transport(ctx context.Context, api *webrtc.API, info transportInfo) (*webrtc.DTLSTransport, error) {
	gatherer, err := api.NewICEGatherer(webrtc.ICEGatherOptions{})
	if err != nil {
		return nil, err
	}
	gathered := make(chan struct{})
	gatherer.OnLocalCandidate(func(c *webrtc.ICECandidate) {
		if c == nil {
			close(gathered)
		}
	})
	if err := gatherer.Gather(); err != nil {
		return nil, err
	}
	select {
	case <-gathered:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	transport := api.NewICETransport(gatherer)
	dtls, err := api.NewDTLSTransport(transport, nil)
	if err != nil {
		return nil, err
	}
	own, err := dtls.GetLocalParameters()
	if err != nil {
		return nil, err
	}
	answer := dtlsParameters{Role: "client"}
	for _, print := range own.Fingerprints {
		answer.Fingerprints = append(answer.Fingerprints, struct {
			Algorithm string `json:"algorithm"`
			Value     string `json:"value"`
		}{print.Algorithm, print.Value})
	}
	if err := s.ask(ctx, "call.connect", map[string]any{"transportId": info.ID, "dtlsParameters": answer}, nil); err != nil {
		return nil, err
	}
	var remote []webrtc.ICECandidate
	for _, c := range info.IceCandidates {
		if c.Protocol == "udp" {
			remote = append(remote, webrtc.ICECandidate{
				Foundation: c.Foundation, Priority: c.Priority, Address: c.Address, Protocol: webrtc.ICEProtocolUDP,
				Port: c.Port, Typ: webrtc.ICECandidateTypeHost, Component: 1,
			})
		}
	}
	if err := transport.SetRemoteCandidates(remote); err != nil {
		return nil, err
	}
	role := webrtc.ICERoleControlling
	p := info.IceParameters
	if err := transport.Start(nil, webrtc.ICEParameters{UsernameFragment: p.UsernameFragment, Password: p.Password, ICELite: p.IceLite}, &role); err != nil {
		return nil, err
	}
	theirs := webrtc.DTLSParameters{Role: webrtc.DTLSRoleServer}
	for _, print := range info.DtlsParameters.Fingerprints {
		theirs.Fingerprints = append(theirs.Fingerprints, webrtc.DTLSFingerprint{Algorithm: print.Algorithm, Value: print.Value})
	}
	return dtls, dtls.Start(theirs)
}

// produce sends silence, 50 packets of Opus a second, as the microphone.
func (s *socket) produce(ctx context.Context, api *webrtc.API, dtls *webrtc.DTLSTransport, opus codec) error {
	track, err := webrtc.NewTrackLocalStaticSample(
		webrtc.RTPCodecCapability{MimeType: opus.MimeType, ClockRate: opus.ClockRate, Channels: opus.Channels}, "mic", "call-client")
	if err != nil {
		return err
	}
	sender, err := api.NewRTPSender(track, dtls)
	if err != nil {
		return err
	}
	parameters := sender.GetParameters()
	ssrc := parameters.Encodings[0].SSRC
	sent := map[string]any{
		"codecs":    []codec{{MimeType: opus.MimeType, PayloadType: opus.PreferredPayloadType, ClockRate: opus.ClockRate, Channels: opus.Channels}},
		"encodings": []map[string]any{{"ssrc": ssrc}},
		"rtcp":      map[string]any{"cname": "call-client"},
	}
	if err := s.ask(ctx, "call.produce", map[string]any{"source": "mic", "kind": "audio", "rtpParameters": sent}, nil); err != nil {
		return err
	}
	if err := sender.Send(parameters); err != nil {
		return err
	}
	go silence(ctx, track)
	return nil
}

func silence(ctx context.Context, track *webrtc.TrackLocalStaticSample) {
	const length = 20 * time.Millisecond
	ticker := time.NewTicker(length)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			_ = track.WriteSample(media.Sample{Data: []byte{0xf8, 0xff, 0xfe}, Duration: length})
		}
	}
}

// consume receives a source: the server makes a consumer, which is paused until it is resumed.
func (s *socket) consume(
	ctx context.Context, api *webrtc.API, dtls *webrtc.DTLSTransport, from producer, enough chan<- map[string]any, failed chan<- error,
) error {
	var answer struct{ Consumers []consumer }
	if err := s.ask(ctx, "call.consume", map[string]any{"producerIds": []string{from.ID}}, &answer); err != nil {
		return err
	}
	// None where the source is gone, or has a codec that this program did not name.
	for _, one := range answer.Consumers {
		receiver, err := api.NewRTPReceiver(webrtc.NewRTPCodecType(one.Kind), dtls)
		if err != nil {
			return err
		}
		coding := webrtc.RTPCodingParameters{
			SSRC: webrtc.SSRC(one.RtpParameters.Encodings[0].SSRC), PayloadType: webrtc.PayloadType(one.RtpParameters.Codecs[0].PayloadType),
		}
		if err := receiver.Receive(webrtc.RTPReceiveParameters{Encodings: []webrtc.RTPDecodingParameters{{RTPCodingParameters: coding}}}); err != nil {
			return err
		}
		go func() {
			for n := 1; ; n++ {
				if _, _, err := receiver.Track().ReadRTP(); err != nil {
					failed <- fmt.Errorf("reading: %w", err)
					return
				}
				if n == *packets {
					enough <- map[string]any{"userId": from.UserID, "source": from.Source, "kind": one.Kind, "packets": n}
					return
				}
			}
		}()
		if err := s.ask(ctx, "call.layers", map[string]any{"consumerId": one.ID, "paused": false}, nil); err != nil {
			return err
		}
	}
	return nil
}
