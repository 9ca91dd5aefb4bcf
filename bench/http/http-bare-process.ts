import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { DatabaseSync } from '@photostructure/sqlite';
import express from 'express';
import type { BareOrder } from './http-bare.ts';

/**
 * The entry of a bare Express server: no token, checks or headers. Express has its defaults except for `etag` and
 * `x-powered-by`, which would only slow it down.
 */
const [order] = (await once(process, 'message')) as [BareOrder];
const app = express();
app.disable('etag');
app.disable('x-powered-by');

const answers = new Map(Object.entries(order.answers));
app.get('/tasks/:id', (request, response) => {
  response.type('json').send(answers.get(request.params.id));
});

const database = new DatabaseSync(order.file);
database.exec('PRAGMA journal_mode = WAL');
database.exec('PRAGMA synchronous = FULL');
database.exec('CREATE TABLE tasks (id INTEGER PRIMARY KEY, body TEXT NOT NULL)');
// The driver closes an unreferenced database, even if it has statements.
app.locals['database'] = database;
const insert = database.prepare('INSERT INTO tasks (body) VALUES (?)');
app.post('/tasks', express.text({ type: 'application/json' }), (request, response) => {
  const { lastInsertRowid } = insert.run(request.body as string);
  response
    .status(201)
    .type('json')
    .send(JSON.stringify({ id: Number(lastInsertRowid) }));
});

const server = app.listen(0, '127.0.0.1');
await once(server, 'listening');
process.send?.((server.address() as AddressInfo).port);
