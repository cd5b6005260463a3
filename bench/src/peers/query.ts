import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import pg from 'pg';
import { coldQuery } from './cold-query.ts';

/**
 * The least that a service over HTTP can do for a cold page: it asks the database and answers with the rows. It knows
 * neither callers nor limits, and trusts that the database has everything.
 */
const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'], max: 1 });
const server = createServer((request, response) => {
  void pool.query(coldQuery, request.url!.split('/').slice(1)).then(({ rows }) => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ data: rows }));
  });
});
server.listen(0, '127.0.0.1', () => console.log(`listening at ${(server.address() as AddressInfo).port}`));
