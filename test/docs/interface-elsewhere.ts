/** Tests whose requests are not recorded, and what they show, by section of the page. */
export interface ElsewhereShown {
  readonly file: string;
  /** As written in the source, with `${…}`. */
  readonly title: string;
  readonly shows: Readonly<Record<string, readonly string[]>>;
}

/**
 * The items that only tests with another client than `ApiClient` show: live streams, browsers, the
 * SDK of the Model Context Protocol, raw sockets, other processes.
 */
export const shownElsewhere: readonly ElsewhereShown[] = [
  {
    file: 'test/process/webui/webui-task-tabs.test.ts',
    title: 'checks changes in a dry run, compares revisions, restores one, and starts a copy',
    shows: {
      '`POST /ext/webui/api/check`': [
        '`200`',
        ...['valid', 'schedule_text', 'next_fire_at', 'changes', 'warnings', 'issues'].map(
          (field) => `answers \`${field}\``,
        ),
      ],
    },
  },
  {
    file: 'test/api/people/sign-in-attacks.test.ts',
    title: "can't put text on the error page",
    shows: {
      '`GET /auth/oidc/callback`': ['takes `error`'],
    },
  },
  {
    file: 'test/api/endpoints/history/audit.test.ts',
    title: 'has only actions and refusals of agents',
    shows: {
      '`GET /audit/live`': ['`200`'],
    },
  },
  {
    file: 'test/api/endpoints/projections.test.ts',
    title: 'list their parked keys, and report unknown ones',
    shows: {
      '`POST /projections/{name}/parked/{key}/retry`': ['`200`'],
      '`POST /projections/{name}/parked/{key}/skip`': ['`200`'],
    },
  },
  {
    file: 'test/api/live/live.test.ts',
    title: 'include a run that started before anybody watched',
    shows: {
      '`GET /runs/live`': ['takes `task_id`'],
    },
  },
  {
    file: 'test/api/live/live.test.ts',
    title: 'report only the runs of the namespace that an admin names',
    shows: {
      '`GET /runs/live`': ['takes `namespace`'],
    },
  },
  {
    file: 'test/api/live/live.test.ts',
    title: 'name each kind of change',
    shows: {
      '`GET /runs/live`': ['takes `state`'],
    },
  },
  {
    file: 'test/api/live/live.test.ts',
    title: 'report each change of a run, with the run as in lists',
    shows: {
      '`GET /runs/live`': ['`200`'],
    },
  },
  {
    file: 'test/api/live/live.test.ts',
    title: 'report only the requested changes',
    shows: {
      '`GET /tasks/{id}/live`': ['`200`', 'takes `state`'],
    },
  },
  {
    file: 'test/api/serving/hardening.test.ts',
    title: 'that does not finish its headers gets an error, and is disconnected',
    shows: {
      Errors: ['`408` `request_timeout`'],
    },
  },
  {
    file: 'test/app/watching/readiness.test.ts',
    title: 'waits for every view to be built, and names the missing ones',
    shows: {
      '`GET /health/ready`': ['`503`'],
    },
  },
  {
    file: 'test/extensions/mcp-endpoint.test.ts',
    title: 'responds to each message as declared',
    shows: {
      '`POST /ext/mcp_http/mcp`': [
        '`200`',
        '`202`',
        '`400`',
        '`406`',
        'takes `jsonrpc`',
        'answers `jsonrpc`',
      ],
      '`GET /ext/mcp_http/mcp`': ['`405`', 'answers `jsonrpc`'],
      '`DELETE /ext/mcp_http/mcp`': ['`405`', 'answers `jsonrpc`'],
    },
  },
  {
    file: 'test/extensions/mcp-http.test.ts',
    title: 'announces the tools as server-sent events, with heartbeats',
    shows: {
      '`GET /ext/mcp_http/sse`': ['`200`'],
    },
  },
  {
    file: 'test/extensions/mcp-http.test.ts',
    title: 'returns the schema of one tool, or of all',
    shows: {
      '`GET /ext/mcp_http/schema`': ['`200`', 'answers `server`', 'answers `tools`'],
      '`GET /ext/mcp_http/tools/{name}/schema`': [
        '`200`',
        'answers `type`',
        'answers `properties`',
      ],
    },
  },
  {
    file: 'test/extensions/mcp-http.test.ts',
    title: "lists the tools within the caller's scopes",
    shows: {
      '`GET /ext/mcp_http/tools`': ['`200`', 'answers `tools`'],
    },
  },
  {
    file: 'test/extensions/mcp-http.test.ts',
    title: 'describes itself to everybody, but requires a token for everything else',
    shows: {
      '`GET /ext/mcp_http/meta`': [
        '`200`',
        'answers `server`',
        'answers `version`',
        'answers `capabilities`',
      ],
      '`GET /ext/mcp_http/schema`': ['answers `version`', 'answers `capabilities`'],
    },
  },
  {
    file: 'test/extensions/mcp-http.test.ts',
    title: 'accepts a handshake from a client that names itself',
    shows: {
      '`POST /ext/mcp_http/handshake`': [
        '`200`',
        'takes `client`',
        'answers `server`',
        'answers `session_id`',
      ],
    },
  },
  {
    file: 'test/extensions/service.test.ts',
    title: 'reports errors in a schedule that is still being typed',
    shows: {
      '`POST /ext/webui/api/preview`': [
        '`200`',
        'answers `valid`',
        'answers `fires`',
        'answers `schedule_text`',
        'answers `warnings`',
        'answers `issues`',
      ],
    },
  },
  {
    file: 'test/extensions/service.test.ts',
    title: 'returns the titles of existing tasks only',
    shows: {
      '`GET /ext/webui/api/titles`': ['`200`', 'takes `ids`', 'answers `tasks`'],
    },
  },
  {
    file: 'test/extensions/service.test.ts',
    title: 'returns the states of existing runs only',
    shows: {
      '`GET /ext/webui/api/states`': ['`200`', 'takes `ids`', 'answers `runs`'],
    },
  },
  {
    file: 'test/extensions/service.test.ts',
    title: 'publishes its health, metrics and extensions',
    shows: {
      '`GET /health`': ['`200`'],
      '`GET /health/ready`': ['`200`'],
      '`HealthReport`': [
        'answers `status`',
        'answers `timestamp`',
        'answers `version`',
        'answers `checks`',
      ],
      '`Readiness`': ['answers `status`', 'answers `checks`'],
    },
  },
  {
    file: 'test/extensions/time-limits.test.ts',
    title: 'responds with 504 if a handler never does, which counts as an error',
    shows: {
      Errors: ['`504` `gateway_timeout`'],
    },
  },
  {
    file: 'test/observability/health.test.ts',
    title: 'has the HTTP status 503 when unhealthy',
    shows: {
      '`GET /health`': ['`503`'],
    },
  },
  {
    file: 'test/process/extensions/extensions.test.ts',
    title: 'publish and report events, also to reconnecting clients, until their token is revoked',
    shows: {
      '`GET /ext/events_demo/subscribe/{stream}`': ['`200`', 'takes `from`'],
    },
  },
  {
    file: 'test/process/webui/webui.test.ts',
    title:
      'is served to everybody, in less than 150 KB compressed, without requests to other sites',
    shows: {
      '`GET /ext/webui/`': ['`200`', '`ETag`'],
    },
  },
  {
    file: 'test/process/webui/webui.test.ts',
    title: 'lists and creates tasks with its own endpoints, for callers with a token',
    shows: {
      '`GET /ext/webui/api/tasks`': ['`200`', 'answers `tasks`'],
      '`POST /ext/webui/api/tasks`': ['`201`', '`ETag`', '`Location`'],
    },
  },
];
