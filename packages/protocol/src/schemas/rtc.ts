import { Type } from '../type.ts';
import type { Static } from 'typebox';
import { open, optional } from './common.ts';

/**
 * What WebRTC endpoints say of themselves, in the terms of mediasoup, which are those of ORTC (docs/calls.md, A client of your own). Both sides
 * send them. Objects are open, because the libraries of clients add fields of their own; the media server ignores what it does not
 * know.
 */

const uint = (maximum: number, more: object = {}) => Type.Integer({ minimum: 0, maximum, ...more });
const text = (maxLength: number, more: object = {}) => Type.String({ maxLength, ...more });
const list = <T extends Parameters<typeof Type.Array>[0]>(item: T, maxItems: number, more: object = {}) =>
  Type.Array(item, { maxItems, ...more });
const choice = <const V extends readonly string[]>(values: V, description?: string) =>
  Type.Unsafe<V[number]>({ type: 'string', enum: [...values], ...(description ? { description } : {}) });
const parameters = (description: string, example: object) =>
  Type.Unsafe<Record<string, unknown>>({
    type: 'object',
    maxProperties: 30,
    additionalProperties: true,
    description,
    examples: [example],
  });

export const MediaKind = choice(['audio', 'video']);

const MimeType = text(50, {
  pattern: '^(audio|video)/[\\w.+-]+$',
  description: 'Kind and name of the codec; `rtx` is the one of repeated packets',
  examples: ['video/VP8'],
});
const PayloadType = (description: string) => uint(127, { description, examples: [101] });
const ClockRate = Type.Integer({ minimum: 1, maximum: 1_000_000, description: 'Hz', examples: [90_000] });
const Channels = Type.Integer({ minimum: 1, maximum: 255, description: 'Of audio only', examples: [2] });
const Ssrc = uint(2 ** 32 - 1, { examples: [1_111_111_111] });
const ExtensionUri = text(200, { examples: ['urn:ietf:params:rtp-hdrext:sdes:mid'] });
const Feedback = list(
  open(
    {
      type: text(50, { examples: ['nack'] }),
      parameter: optional(text(50, { description: 'What of that type', examples: ['pli'] })),
    },
    'RtcpFeedback',
  ),
  20,
  { description: 'What a receiver may report of the codec (`a=rtcp-fb` of SDP)' },
);
const CodecParameters = parameters(
  'The codec’s own parameters (`a=fmtp` of SDP): strings and numbers. `apt` of `rtx` is the payload type of the codec whose packets it repeats',
  { useinbandfec: 1 },
);

const RtpCodecCapability = open(
  {
    kind: MediaKind,
    mimeType: MimeType,
    preferredPayloadType: optional(PayloadType('The number that this endpoint would give the codec')),
    clockRate: ClockRate,
    channels: optional(Channels),
    parameters: optional(CodecParameters),
    rtcpFeedback: optional(Feedback),
  },
  'RtpCodecCapability',
);
const RtpHeaderExtension = open(
  {
    kind: MediaKind,
    uri: ExtensionUri,
    preferredId: Type.Integer({
      minimum: 1,
      maximum: 255,
      description: 'The number that this endpoint would give it',
    }),
    preferredEncrypt: optional(Type.Boolean({ description: 'Always false: none is encrypted' })),
    direction: optional(choice(['sendrecv', 'sendonly', 'recvonly', 'inactive'])),
  },
  'RtpHeaderExtension',
);

/** What an endpoint can receive; of the media server also what it can send. */
export const RtpCapabilities = open(
  {
    codecs: list(RtpCodecCapability, 100, { description: 'The codecs, and `rtx` of each' }),
    headerExtensions: optional(
      list(RtpHeaderExtension, 100, { description: 'The RTP header extensions (RFC 8285)' }),
    ),
  },
  'RtpCapabilities',
);
export type RtpCapabilities = Static<typeof RtpCapabilities>;

const RtpCodec = open(
  {
    mimeType: MimeType,
    payloadType: PayloadType('The number of the codec in the packets of this source'),
    clockRate: ClockRate,
    channels: optional(Channels),
    parameters: optional(CodecParameters),
    rtcpFeedback: optional(Feedback),
  },
  'RtpCodec',
);
const RtpEncoding = open(
  {
    ssrc: optional(Ssrc),
    rid: optional(text(32, { description: 'Names a simulcast layer that has no `ssrc`', examples: ['r0'] })),
    codecPayloadType: optional(PayloadType('Which of `codecs`; the first if missing')),
    rtx: optional(open({ ssrc: Ssrc }, 'RtxEncoding')),
    dtx: optional(Type.Boolean({ description: 'Sends nothing while there is silence' })),
    scalabilityMode: optional(
      text(32, { description: 'Layers within the stream, such as L1T3', examples: ['L1T3'] }),
    ),
    scaleResolutionDownBy: optional(Type.Number({ minimum: 1, maximum: 1_000 })),
    maxBitrate: optional(Type.Integer({ minimum: 0, maximum: 1_000_000_000, examples: [500_000] })),
  },
  'RtpEncoding',
);

/** A source as it is sent: its codecs, and one encoding for each simulcast layer. */
export const RtpParameters = open(
  {
    mid: optional(text(32, { description: 'The media section in SDP', examples: ['0'] })),
    codecs: list(RtpCodec, 20, { minItems: 1 }),
    headerExtensions: optional(
      list(
        open(
          {
            uri: ExtensionUri,
            id: Type.Integer({ minimum: 1, maximum: 255 }),
            encrypt: optional(Type.Boolean()),
            parameters: optional(parameters('Strings and numbers', {})),
          },
          'RtpHeaderExtensionParameters',
        ),
        50,
      ),
    ),
    encodings: optional(list(RtpEncoding, 8)),
    rtcp: optional(
      open(
        {
          cname: optional(text(256, { examples: ['c6a1f0'] })),
          reducedSize: optional(Type.Boolean()),
          mux: optional(Type.Boolean()),
        },
        'RtcpParameters',
      ),
    ),
  },
  'RtpParameters',
);
export type RtpParameters = Static<typeof RtpParameters>;

const DtlsFingerprint = open(
  {
    algorithm: choice(['sha-1', 'sha-224', 'sha-256', 'sha-384', 'sha-512']),
    value: Type.String({
      pattern: '^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){19,63}$',
      examples: [Array(32).fill('AB').join(':')],
    }),
  },
  'DtlsFingerprint',
);
export const DtlsParameters = open(
  {
    role: optional(
      choice(
        ['auto', 'client', 'server'],
        'The media server says `auto`: it takes the part that the device leaves',
      ),
    ),
    fingerprints: list(DtlsFingerprint, 10, {
      minItems: 1,
      description: 'Of the certificate; the other side must compare one that it knows',
    }),
  },
  'DtlsParameters',
);
export type DtlsParameters = Static<typeof DtlsParameters>;

export const IceParameters = open(
  {
    usernameFragment: text(256),
    password: text(256),
    iceLite: optional(
      Type.Boolean({ description: 'True: it only answers, so the device is the controlling side' }),
    ),
  },
  'IceParameters',
);
export type IceParameters = Static<typeof IceParameters>;

export const IceCandidate = open(
  {
    foundation: text(64),
    priority: uint(2 ** 32 - 1),
    address: text(256, { description: 'An IP address, or a name', examples: ['203.0.113.10'] }),
    ip: text(256, { description: 'The same, under its earlier name', examples: ['203.0.113.10'] }),
    protocol: choice(['udp', 'tcp']),
    port: Type.Integer({ minimum: 1, maximum: 65_535, examples: [20_000] }),
    type: choice(['host', 'srflx', 'prflx', 'relay']),
    tcpType: optional(choice(['active', 'passive', 'so'])),
  },
  'IceCandidate',
);
export type IceCandidate = Static<typeof IceCandidate>;
