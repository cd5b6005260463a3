import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, it } from 'node:test';
import { useService } from '../support/use.ts';

const { service } = useService();

/** Writes, reads to the end, and never ends its own half; resolves with the error that the reset then gives. */
async function holdOpen(text: string): Promise<{ answer: string; error: NodeJS.ErrnoException }> {
  const socket = connect({ port: service.port, host: '127.0.0.1', allowHalfOpen: true });
  try {
    let answer = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => (answer += chunk));
    const ended = once(socket, 'end');
    socket.write(text);
    await ended;
    const broken = new Promise<NodeJS.ErrnoException>((resolve) => socket.once('error', resolve));
    // Ours is still open: writing goes well for as long as the other side keeps its descriptor.
    const writing = setInterval(() => socket.write('x'), 50);
    try {
      return { answer, error: await broken };
    } finally {
      clearInterval(writing);
    }
  } finally {
    socket.destroy();
  }
}

describe('api#slow-clients: a connection that was told to go is let go of', () => {
  it('also when the other side keeps its half open after something that is not HTTP', async () => {
    const { answer, error } = await holdOpen('nonsense\r\n\r\n');
    assert.match(answer, /^HTTP\/1\.1 400 /);
    assert.match(error.code ?? '', /^(EPIPE|ECONNRESET)$/);
  });

  it('also after headers that are too large', async () => {
    const { answer } = await holdOpen(`GET /healthz HTTP/1.1\r\nHost: a\r\nX: ${'a'.repeat(20_000)}\r\n\r\n`);
    assert.match(answer, /"code":"invalid_request"/);
  });
});
