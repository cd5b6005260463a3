import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import Fastify from 'fastify';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ApiError, limits } from '@parley/protocol';
import type { OperationName } from '@parley/protocol';
import { notFound } from '../../platform/api-errors.ts';
import { clientAddress, isMalformed, malformed } from '../gateway/upgrade.ts';
import { keyName } from '../../platform/rate-limit/port.ts';
import { ofAddress, rateHeaders, take } from '../limits.ts';
import { failure } from './answer.ts';
import { Idempotency } from './idempotency.ts';
import { KnownPaths } from './known-paths.ts';
import type { RestOptions } from './options.ts';
import { planes } from './planes.ts';
import { answerHeaders, rawFailure, retryAfter } from './raw-answer.ts';
import { send, toApiError } from './reply.ts';
import { createRoute } from './route.ts';
import { createPage, remembered } from './pages.ts';
import { SlowClients } from './slow-clients.ts';

/** Whom the request counts for: its caller, or the address of one who is not known. */
const whoOf = ({ who, ip }: FastifyRequest): string => who ?? keyName(ofAddress(ip).key);

/** Readiness is checked at most once in this many milliseconds. */
const readyMs = 250;
const health = new Set(['/healthz', '/readyz']);

/** Routes have no schemas of Fastify's: operations are validated by platform/validation.ts. Its own compilers would be a sixth of what a start loads. */
const unused = (): never => {
  throw new Error('a route has a schema of Fastify');
};

/** The REST binding: generic over the operation table, with the pages and health beside it. */
export function createRest(options: RestOptions): FastifyInstance {
  const { services, limiter, logger, metrics } = options;
  const app = Fastify({
    logger: false,
    schemaController: { compilersFactory: { buildValidator: unused, buildSerializer: unused } },
    bodyLimit: limits.bodyBytes,
    routerOptions: {
      maxParamLength: 2 * limits.pushTokenCharacters,
      caseSensitive: true,
      ignoreTrailingSlash: false,
    },
    // The proxy appends the address it saw; what stands before it is only claimed by the client.
    trustProxy: options.trustProxy && ((_address, hop) => hop === 0),
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    genReqId: () => services.ids.make('request'),
    frameworkErrors: (error, request, reply) => {
      reply.headers({ 'Request-Id': request.id, ...answerHeaders, ...planes.tenant.cors });
      void unhurried(request, reply)
        .catch(() => undefined)
        .then(() => reply.sent || send(reply, failure(toApiError(error), request.id)));
    },
    clientErrorHandler: (error, socket) => {
      if (error.code === 'ECONNRESET' || !socket.writable) return;
      // What is not HTTP, or has too large headers, never becomes a request: the complete answer is written here.
      void rawFailure(
        { limiter, ids: services.ids },
        malformed(),
        socket.remoteAddress ?? '',
        planes.tenant.cors,
      ).then((answer) => socket.end(answer));
    },
    serverFactory: (handler): Server => {
      const server: Server = createServer(
        {
          // How often Node looks for headers that take too long; every 30 s otherwise.
          connectionsCheckingInterval: 1_000,
          // Any other upgrade (h2c) is an offer that may be ignored: the request is answered as if the offer were not
          // made.
          shouldUpgradeCallback: (req): boolean => {
            const isSocket =
              req.headers.upgrade?.toLowerCase() === 'websocket' && server.listenerCount('upgrade') > 0;
            if (isSocket) slow.upgraded(req.socket);
            return isSocket;
          },
        },
        (req, res) => {
          if (!isMalformed(req) && options.intercept?.(req, res, () => stamp(req, res))) return;
          slow.boundBody(req);
          handler(req as IncomingMessage, res);
        },
      );
      return server;
    },
  });
  const slow = new SlowClients(app.server, () => services.clock.monotonic());
  metrics.gauge('parley_unsent_bytes', 'Answers that wait to be read', () => slow.unreadBytes);

  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, text, done) => {
    if (text === '') return done(null, undefined);
    try {
      done(null, JSON.parse(text as string));
    } catch {
      done(new ApiError('invalid_request', { message: 'The body is not valid JSON.' }));
    }
  });

  app.addHook('onRequest', async (request, reply) => {
    reply.header('Request-Id', request.id);
    const plane = planes[request.routeOptions.config.plane ?? 'tenant'];
    reply.headers(answerHeaders).headers(plane.cors);
    if (isMalformed(request.raw)) {
      reply.header('Connection', 'close');
      throw malformed();
    }
    if (!options.started() && !health.has(request.routeOptions.url ?? ''))
      throw new ApiError('service_unavailable');
    if (request.method === 'OPTIONS') {
      await unhurried(request, reply);
      return reply.sent
        ? reply
        : reply
            .headers({ ...allow(request), ...plane.preflight })
            .code(204)
            .send();
    }
    // Here and not later, because a request for an unknown path need not have a body that we can read.
    if (!request.is404) return undefined;
    await anonymous(request, reply);
    const allowed = allow(request);
    reply.headers(allowed);
    throw 'Allow' in allowed ? new ApiError('method_not_allowed') : notFound('Path');
  });

  const known = new KnownPaths();
  app.addHook('onRoute', ({ url, method }) => known.add(url, method));
  const allow = (request: FastifyRequest): { Allow?: string } => known.allow(request.url.split('?', 1)[0]!);

  // While closing, a connection ends with its answer: kept alive, it would delay the end of the process.
  let closing = false;
  app.addHook('preClose', (done) => {
    closing = true;
    done();
  });

  app.addHook('onSend', (request, reply, payload, done) => {
    if (closing) reply.header('Connection', 'close');
    if (typeof payload !== 'string' && !Buffer.isBuffer(payload) && !(payload instanceof Readable))
      return done();
    const watched = slow.watch(whoOf(request), payload, reply.raw);
    // The length of a body that is written while it is sent is not known.
    if (watched instanceof Readable && !(payload instanceof Readable))
      reply.header('Content-Length', String(Buffer.byteLength(payload)));
    done(null, watched);
  });

  app.addHook('onResponse', (request, reply, done) => {
    const operation = request.routeOptions.config.operation ?? 'none';
    const ms = reply.elapsedTime;
    metrics.requestSeconds.observe({ operation, status: String(reply.statusCode) }, ms / 1000);
    const { concerns } = request;
    if (concerns) {
      services.analytics.tally.request(concerns.env.no, reply.statusCode);
      options.recorder.add({
        env: concerns.env.no,
        at: services.clock.now(),
        kind: 'request',
        failed: reply.statusCode >= 400,
        ms,
        requestId: request.id,
        method: request.method,
        operation,
        status: reply.statusCode,
        code: request.failure ?? null,
        caller: concerns.caller === 'anyone' ? undefined : concerns.caller,
        callerId: concerns.callerId,
        user: concerns.user,
        address: request.ip,
      });
    }
    const line = {
      requestId: request.id,
      env: concerns?.env.id,
      operation,
      status: reply.statusCode,
      ms: Math.round(ms),
    };
    // Refusals of strangers are not logged, because there may be thousands per second.
    const quiet =
      request.routeOptions.config.quiet ?? (request.who === undefined && reply.statusCode === 429);
    const passing = reply.statusCode === 503 && (quiet || !options.started());
    if (reply.statusCode >= 500 && !passing) logger.error(line, 'request');
    else if (quiet || passing) logger.debug(line, 'request');
    else logger.info(line, 'request');
    done();
  });

  app.setErrorHandler(async (error: FastifyError | ApiError, request, reply) => {
    const api = toApiError(error);
    request.failure = api.code;
    if (api.code === 'internal') logger.error({ requestId: request.id, err: error }, 'request failed');
    if (!reply.hasHeader('RateLimit-Limit')) await anonymousHeaders(request, reply);
    if (api.retryAfterMs !== null && (api.row.http === 429 || api.row.http === 503))
      reply.header('Retry-After', retryAfter(api.retryAfterMs));
    if (api.row.http === 429 || api.row.http === 503) await holdBack(request, reply);
    if (reply.sent) return reply;
    const isPage = request.routeOptions.config.operation === 'page';
    if (isPage && api.row.http === 503 && request.headers.accept?.includes('text/html'))
      return reply.code(503).headers(startingHeaders).type('text/html; charset=utf-8').send(starting);
    return send(reply, failure(api, request.id));
  });

  /** Callers who are refused and ask again at once get their answer later, or none. */
  async function holdBack(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    if (await slow.hold(whoOf(request))) return;
    reply.hijack();
    request.raw.destroy();
  }

  /** Requests without a caller are counted by address. */
  async function anonymousHeaders(request: FastifyRequest, reply: FastifyReply): Promise<ApiError | null> {
    const { verdict, refused } = await take(limiter, [ofAddress(request.ip)]);
    reply.headers(rateHeaders(verdict));
    return refused;
  }

  async function anonymous(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const refused = await anonymousHeaders(request, reply);
    if (refused) throw refused;
  }

  /** Health and preflights are never refused, but callers who ask too often have to wait. */
  async function unhurried(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    if (await anonymousHeaders(request, reply)) await holdBack(request, reply);
  }

  /** Transfers of files are bounded by the storage; the rate-limit headers here only inform. */
  async function stamp(req: IncomingMessage, res: ServerResponse): Promise<void> {
    res.setHeader('Request-Id', services.ids.make('request'));
    const ip = clientAddress(req, options.trustProxy);
    const { key, limit } = ofAddress(ip);
    const { verdict } = await take(limiter, [{ key: { ...key, what: 'transfer' }, limit }]);
    for (const [name, value] of Object.entries(rateHeaders(verdict))) res.setHeader(name, value);
  }

  const shared = { idempotency: new Idempotency(limiter), slow };
  for (const operation of options.operations) {
    const { name, method, plane } = operation;
    const url = operation.path.replaceAll(/\{(\w+)\}/g, ':$1');
    app.route({
      method,
      url,
      config: { operation: name, plane },
      ...createRoute(name as OperationName, operation, options, shared),
    });
    // The hook above answers; the route only says to which plane the path belongs.
    if (plane === 'control' && !app.hasRoute({ method: 'OPTIONS', url }))
      app.options(url, { config: { plane } }, (_request, reply) => reply.send());
  }

  for (const path of ['/v1', '/v1/'])
    app.get(path, { config: { operation: 'none', quiet: true }, onRequest: anonymous }, () => {
      throw new ApiError('not_found', {
        message:
          'Here is the socket: open it as a WebSocket. If you did, a proxy in between drops the upgrade.',
      });
    });
  const healthz = { operation: 'healthz', quiet: true };
  app.get('/healthz', { config: healthz, onRequest: unhurried }, () => ({ status: 'ok' }));
  const readiness = remembered(options.readiness, readyMs, () => services.clock.monotonic());
  const readyz = { operation: 'readyz', quiet: true };
  app.get('/readyz', { config: readyz, onRequest: unhurried }, async (_request, reply) => {
    const found = await readiness();
    return reply.code(found.status === 'not ready' ? 503 : 200).send({ ...found, ...options.details() });
  });
  for (const page of options.pages) {
    const config = { operation: 'page', quiet: true };
    const answer = createPage(page, () => services.clock.now(), options.isLocal);
    app.get(page.path, { config, onRequest: anonymous }, answer);
  }
  for (const { path, answer } of options.apps ?? []) {
    // Belongs to the control plane, so that pages of other sites cannot read it.
    const config = { operation: 'page', plane: 'control', quiet: true } as const;
    const handler = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
      const [asked, query = ''] = request.url.split('?', 2) as [string, string?];
      const accepted = String(request.headers['accept-encoding'] ?? '');
      const { status, headers, body } = await answer(asked, accepted, query);
      reply.headers(headers);
      if (headers['etag'] !== undefined && request.headers['if-none-match'] === headers['etag'])
        return reply.code(304).removeHeader('content-encoding').send();
      return reply.code(status).send(body);
    };
    for (const url of [path, `${path}/*`]) app.get(url, { config, onRequest: anonymous }, handler);
  }
  return app;
}

/** The page until the store is ready; it reloads itself. */
const startingHeaders = {
  'Retry-After': '2',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
};
const starting = `<!doctype html>
<html lang="en">
  <head><meta charset="utf-8" /><meta http-equiv="refresh" content="2" /><title>Parley is starting</title></head>
  <body><p>Parley is starting: its store is not ready yet. This page looks again by itself.</p></body>
</html>
`;
