import type { RtpCapabilities, RtpParameters } from '@parley/protocol';

/** RTP parameters as a browser would send them, for tests without one. */

export const receiving: RtpCapabilities = {
  codecs: [
    { kind: 'audio', mimeType: 'audio/opus', clockRate: 48_000, channels: 2, preferredPayloadType: 100 },
    { kind: 'video', mimeType: 'video/VP8', clockRate: 90_000, preferredPayloadType: 101 },
  ],
  headerExtensions: [],
};

let ssrc = 1_000;

export const audio = (): RtpParameters => ({
  mid: String(++ssrc),
  codecs: [
    {
      mimeType: 'audio/opus',
      payloadType: 111,
      clockRate: 48_000,
      channels: 2,
      parameters: { useinbandfec: 1 },
    },
  ],
  encodings: [{ ssrc }],
  rtcp: { cname: 'test' },
});

export const video = (): RtpParameters => ({
  mid: String(++ssrc),
  codecs: [{ mimeType: 'video/VP8', payloadType: 96, clockRate: 90_000, parameters: {} }],
  encodings: [{ ssrc }],
  rtcp: { cname: 'test' },
});

export const dtls = {
  role: 'client',
  fingerprints: [{ algorithm: 'sha-256', value: Array(32).fill('AB').join(':') }],
};
