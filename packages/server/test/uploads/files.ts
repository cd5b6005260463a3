import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { Api } from '../support/api.ts';
import { png, upload } from '../storage/suite.ts';

export interface TestFile {
  filename: string;
  contentType: string;
  body: Buffer;
  /** What is announced of a voice note. */
  voice?: { durationMs: number; waveform: string };
}

/** 7 by 5 pixels. */
export const picture: TestFile = { filename: 'cat.png', contentType: 'image/png', body: png };
export const document: TestFile = {
  filename: 'Müllers Rechnung.pdf',
  contentType: 'application/pdf',
  body: Buffer.from('%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\ntrailer << /Root 1 0 R >>\n%%EOF\n'),
};
export const voiceNote: TestFile = {
  filename: 'note.ogg',
  contentType: 'audio/ogg',
  body: Buffer.concat([Buffer.from('OggS'), Buffer.alloc(60)]),
  voice: { durationMs: 1_000, waveform: 'AAEC' },
};
export const program = Buffer.concat([Buffer.from('MZ\x90\0\x03\0\0\0', 'latin1'), Buffer.alloc(200, 7)]);

export const announcement = (conversationId: string, file: TestFile) => ({
  conversationId,
  filename: file.filename,
  size: file.body.length,
  contentType: file.contentType,
  ...file.voice,
});

export const announce = (api: Api, conversationId: string, file: TestFile) =>
  api('POST', '/v1/uploads', announcement(conversationId, file));

/** Announces a file and sends it to the storage; the id of the attachment that is not completed yet. */
export async function transfer(api: Api, conversationId: string, file: TestFile): Promise<string> {
  const ticket = await announce(api, conversationId, file);
  assert.equal(ticket.status, 201, JSON.stringify(ticket.body));
  const answer = await upload(ticket.body.upload, file.body);
  assert.ok(answer.ok, `${answer.status} ${await answer.text()}`);
  return ticket.body.attachmentId as string;
}

export const complete = (api: Api, id: string) => api('POST', `/v1/uploads/${id}/complete`);

/** The whole way to a ready attachment. */
export async function ready(api: Api, conversationId: string, file: TestFile = picture): Promise<string> {
  const id = await transfer(api, conversationId, file);
  const answer = await complete(api, id);
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return id;
}

/** For what another process does soon: asks until it is so. */
export async function eventually(holds: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (const end = Date.now() + 120_000; !(await holds()); await delay(20))
    assert.ok(Date.now() < end, `never happened: ${what}`);
}
