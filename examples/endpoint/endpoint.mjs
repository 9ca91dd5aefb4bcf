// Your own code behind an HTTP endpoint, for steps that use http.request: `node examples/endpoint/endpoint.mjs`.
// PORT is where it listens; 3000 by default.

import { createServer } from 'node:http';

/** Results by idempotency key. Keep them in your database, beside what the work changes. */
const results = new Map();

/** The work itself: replace it with yours. */
function buildReport({ day }) {
  return { report: `sales of ${day}`, rows: 42 };
}

const server = createServer(async (request, response) => {
  const answer = (status, body) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body));
  };
  let text = '';
  for await (const chunk of request) text += chunk;
  if (request.method !== 'POST' || request.url !== '/report') {
    return answer(404, { error: 'POST /report is all there is' });
  }
  // A retry after a lost answer carries the same key: answer it without doing the work again.
  const key = request.headers['idempotency-key'];
  const result = results.get(key) ?? buildReport(JSON.parse(text));
  if (key !== undefined) results.set(key, result);
  answer(200, result);
});

server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});
