// An extension, whole: load it by SVC_EXT_PATHS=examples/hello. docs/how-to/extensions.md says what a context holds.

const heard = new Map();

// What clients can ask of it, for /openapi.json. It routes nothing: setup does.
export const endpoints = [
  {
    method: 'get',
    path: '/greet/:name',
    summary: 'Greets somebody',
    scopes: [],
    answers: {
      200: {
        type: 'object',
        properties: { message: { type: 'string' } },
        required: ['message'],
        additionalProperties: false,
      },
    },
  },
];

/** @param context what the manifest's capabilities give */
export async function setup(context) {
  const { routes, toolRegistry, events, core, config } = context;
  const greeting = config.greeting ?? 'Hello';

  // GET /ext/hello/greet/Ada, with any valid token
  routes.get('/greet/:name', (request, response) => {
    response.json({ message: `${greeting}, ${request.params.name}!` });
  });

  // GET /ext/hello/tasks: what the caller may see of the service, as the caller
  routes.get('/tasks', async (request, response) => {
    const { status, body } = await core.request('GET', '/tasks', {
      onBehalfOf: request,
      query: { limit: 5 },
    });
    response.status(status).json(body);
  });

  // GET /ext/hello/heard: how many events of each topic this process has been handed
  routes.get('/heard', (_request, response) => {
    response.json({ topics: Object.fromEntries(heard) });
  });

  // {"uses": "hello.greet", "with": {"name": "Ada"}}
  toolRegistry.registerTool('greet', ({ name }) => ({ message: `${greeting}, ${name}!` }), {
    type: 'object',
    description: 'Greets somebody.',
    properties: { name: { type: 'string', minLength: 1 } },
    required: ['name'],
    additionalProperties: false,
  });

  await events.subscribe('hello.#', ({ topic }) => {
    heard.set(topic, (heard.get(topic) ?? 0) + 1);
  });
}

export function shutdown() {
  heard.clear();
}
