import { Type } from '../type.ts';
import { limits } from '../limits.ts';
import { IdParam, nullable, open, optional, Timestamp } from '../schemas/common.ts';
import { Attachment } from '../schemas/resources.ts';
import { operation, table } from './define.ts';

const tag = 'Uploads and attachments';
const both = ['server', 'client'] as const;
const oneAttachment = { attachmentId: IdParam };
const Pixels = nullable(Type.Integer({ minimum: 0, maximum: 1_000_000 }));
/** uploads#voice: base64 of 1 to 128 bytes, so 42 whole groups and a last one of two bytes at most. */
const Waveform = Type.String({
  minLength: 4,
  maxLength: 4 * Math.ceil(limits.waveformBytes / 3),
  pattern: `^([A-Za-z0-9+/]{4}){0,${Math.floor(limits.waveformBytes / 3)}}([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$`,
});
const strings = Type.Record(Type.String(), Type.String());

/** uploads#ticket. */
export const UploadTicket = open({
  attachmentId: Type.String({ pattern: '^att_' }),
  upload: open({
    method: Type.Union([Type.Literal('POST'), Type.Literal('PUT')]),
    url: Type.String(),
    fields: optional(strings),
    headers: optional(strings),
  }),
  expiresAt: Timestamp,
});

export const uploadsOperations = table(
  operation('uploads.create', 'POST /v1/uploads', {
    summary: 'Announce an upload and get a ticket for it, valid 10 minutes (members)',
    text: 'Step one of three: announce the file, send it straight to the storage as the ticket says (PUT with its headers, or POST with its form fields and the file as `file`), then complete it. Types that browsers would run are refused: SVG, HTML, scripts, programs. At most 25 MB.',
    tag,
    callers: both,
    body: {
      conversationId: IdParam,
      filename: Type.String({ minLength: 1, maxLength: limits.filenameCharacters }),
      size: Type.Integer({
        minimum: 1,
        maximum: Number.MAX_SAFE_INTEGER,
        description: 'Bytes, at most 25 MB',
      }),
      contentType: Type.String({ minLength: 1, maxLength: 200, pattern: '^[ -~]+$' }),
      width: optional(Pixels),
      height: optional(Pixels),
      durationMs: optional(Type.Integer({ minimum: 1, maximum: limits.voiceMs })),
      waveform: optional(Waveform),
    },
    statuses: [201],
    response: UploadTicket,
    errors: [
      'not_found',
      'not_member',
      'blocked',
      'restricted',
      'file_too_large',
      'plan_limit_reached',
      'storage_unavailable',
    ],
    rate: 'upload',
  }),

  operation('uploads.complete', 'POST /v1/uploads/{attachmentId}/complete', {
    summary: 'Check the uploaded file and make the attachment ready (uploader, server)',
    text: 'Checks the size and type of the file in the storage, and makes the attachment `ready`; its id then goes into a message. Before the file has arrived it is `422 attachment_not_ready`: try again.',
    tag,
    callers: both,
    params: oneAttachment,
    response: Attachment,
    errors: [
      'not_found',
      'not_member',
      'blocked',
      'restricted',
      'attachment_not_ready',
      'storage_unavailable',
    ],
    repeatable: true,
    cost: 0,
  }),

  operation('attachments.url', 'GET /v1/attachments/{attachmentId}/url', {
    summary: 'A download URL that expires; files that are no images are served as attachments (members)',
    text: 'Ask when somebody wants to see the file; the URL works without a credential until it expires.',
    tag,
    callers: both,
    params: oneAttachment,
    query: {
      expiresIn: optional(
        Type.Integer({
          minimum: limits.downloadUrlSeconds.min,
          maximum: limits.downloadUrlSeconds.max,
          default: limits.downloadUrlSeconds.default,
          description: 'Seconds',
        }),
      ),
    },
    response: open({ url: Type.String(), expiresAt: Timestamp }),
    errors: ['not_found', 'not_member', 'attachment_not_ready', 'storage_unavailable'],
  }),
);
