import { Type, type Static, type TProperties } from '@sinclair/typebox';
import { taskDefaults, taskFields } from '../../domain/tasks/task-definition.ts';
import {
  disabledRuns,
  misfirePolicies,
  runStates,
  runTriggers,
  scheduleKinds,
  taskOrders,
  taskStatuses,
  type TaskOrder,
} from '../../domain/vocabulary.ts';
import { AnyObject, Nullable, OneOf, closed } from '../../domain/events/schema-parts.ts';
import { KEPT_OF_A_TOPIC } from '../../projections/views/published.ts';
import { ReplayName } from './response-schemas-replays.ts';
import { NAMESPACE_PATTERN } from '../../domain/namespaces/namespace.ts';
import { SECRET_NAME_PATTERN } from '../../domain/secrets/secret-source.ts';
import { pageParameters } from '../endpoints/listing.ts';
import { TaskPayload } from './task-payload.ts';

/** Request schemas. Types and validators are derived from them. */

export const uuid = Type.String({ format: 'uuid', description: 'a UUID' });

/**
 * For strings that are compared by a hash. JSON can express half of a surrogate pair, but UTF-8 cannot. So two strings
 * that differ only in such halves would have the same hash.
 */
const wellFormed = {
  format: 'well-formed',
  description: 'a string of well-formed Unicode',
} as const;

/** An agent's name. Names that differ only in outer spaces would look the same. */
const name = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: String.raw`^\S([\s\S]*\S)?$`,
  format: wellFormed.format,
  description: `${wellFormed.description}, without spaces at either end`,
});
const scope = Type.String({
  pattern: '^[a-z0-9_:.*-]{1,100}$',
  description: '1 to 100 of a-z 0-9 _ : . * -',
});
const scopes = Type.Array(scope, { maxItems: 100, uniqueItems: true });
const webhookUrl = Nullable(
  Type.String({
    maxLength: 2000,
    format: 'http-url',
    description:
      'an http or https URL without user and password; the signature authenticates messages',
  }),
);

export const CreateAgent = Type.Object(
  {
    name,
    scopes,
    webhook_url: Type.Optional(webhookUrl),
    namespace: Type.Optional(
      Type.String({
        pattern: NAMESPACE_PATTERN,
        description: "the namespace of the agent, which never changes; default: the caller's",
      }),
    ),
  },
  { title: 'CreateAgent', additionalProperties: false },
);
export type CreateAgent = Static<typeof CreateAgent>;

export const UpdateAgent = Type.Partial(closed({ name, scopes, webhook_url: webhookUrl }), {
  title: 'UpdateAgent',
});
export type UpdateAgent = Static<typeof UpdateAgent>;

const { cursor: _noCursor, ...plainPageParameters } = pageParameters;

/** The name of a replay, to read its views instead of the live ones. */
export const view = Type.Optional(ReplayName);

/** The list of agents is a bare array, which cannot contain a cursor. */
export const AgentQuery = Type.Object({
  ...plainPageParameters,
  view,
  name_filter: Type.Optional(Type.String({ maxLength: 100 })),
  scope_filter: Type.Optional(Type.String({ maxLength: 100 })),
});
export type AgentQuery = Static<typeof AgentQuery>;

export const RemoveAgentQuery = Type.Object({ cancel_tasks: Type.Boolean({ default: false }) });
export type RemoveAgentQuery = Static<typeof RemoveAgentQuery>;

export const DisableQuery = Type.Object({
  runs: Type.Unsafe<(typeof disabledRuns)[number]>({
    type: 'string',
    enum: [...disabledRuns],
    default: 'finish',
  }),
});
export type DisableQuery = Static<typeof DisableQuery>;

export const CreateApiKey = Type.Object(
  {
    name,
    scopes: Type.Optional(scopes),
    expires_at: Type.Optional(Nullable(Type.String({ maxLength: 64 }))),
  },
  { title: 'CreateApiKey', additionalProperties: false },
);
export type CreateApiKey = Static<typeof CreateApiKey>;

const secret = Type.String({ minLength: 16, maxLength: 200, ...wellFormed });

export const SetCredentials = Type.Partial(closed({ agent_secret: secret }));
export type SetCredentials = Static<typeof SetCredentials>;

export const TokenRequest = closed({
  agent_id: uuid,
  agent_secret: Type.Optional(Type.String({ maxLength: 1000 })),
});
export type TokenRequest = Static<typeof TokenRequest>;

const token = Type.String({ minLength: 1, maxLength: 10_000 });
export const RefreshRequest = closed({ refresh_token: token });
export type RefreshRequest = Static<typeof RefreshRequest>;

export const SignInQuery = Type.Object({
  view: Type.String({
    default: '',
    maxLength: 500,
    pattern: '^([a-z][!#-;=?-~]*)?$',
    description: 'the view of the web page to show afterwards, such as `runs/<id>`',
  }),
});
export type SignInQuery = Static<typeof SignInQuery>;

const ofProvider = (description: string) =>
  Type.Optional(Type.String({ maxLength: 4000, description }));
/** The response of a provider (RFC 6749, section 4.1.2; RFC 9207). Providers add their own parameters. */
export const SignInResponseQuery = Type.Object(
  {
    code: ofProvider('exchanged for the tokens of the person, once'),
    state: ofProvider('the state that this browser got when it started to sign in'),
    iss: ofProvider('the issuer that responds'),
    error: ofProvider('why nobody was signed in, such as `access_denied`'),
  },
  { additionalProperties: true },
);
export type SignInResponseQuery = Static<typeof SignInResponseQuery>;

/** A form (RFC 6749, sections 4.4.2 and 6). Other fields are ignored. */
export const OAuthTokenRequest = Type.Object({
  grant_type: Type.String({ description: '`client_credentials` or `refresh_token`' }),
  client_id: Type.Optional(Type.String({ description: "the agent's id" })),
  client_secret: Type.Optional(Type.String({ maxLength: 1000, description: "the agent's secret" })),
  refresh_token: Type.Optional(
    Type.String({
      ...token,
      description: 'for the grant `refresh_token`: a token of the same agent',
    }),
  ),
  resource: Type.Optional(
    Type.Array(Type.String(), {
      maxItems: 10,
      description: 'address of the service or of its MCP endpoint (RFC 8707)',
    }),
  ),
  scope: Type.Optional(
    Type.String({ description: 'ignored; a token always has the scopes of its agent' }),
  ),
});
export type OAuthTokenRequest = Static<typeof OAuthTokenRequest>;

export const RevokeRequest = Type.Partial(closed({ token, refresh_token: token }));
export type RevokeRequest = Static<typeof RevokeRequest>;

const key = Nullable(Type.String({ minLength: 1, maxLength: 200, ...wellFormed }));
const givenFields = {
  ...taskFields,
  payload: TaskPayload,
  dedupe_key: key,
  concurrency_key: key,
};
const { title, description, schedule_kind, payload, ...otherTaskFields } = givenFields;
const { created_by: _owner, ...optionalTaskFields } = otherTaskFields;

/** Declares the default of each field. */
function withDeclaredDefaults<T extends TProperties>(fields: T): T {
  const defaults: Readonly<Record<string, unknown>> = taskDefaults;
  return Object.fromEntries(
    Object.entries(fields).map(([name, schema]) => [
      name,
      name in defaults ? { ...schema, default: defaults[name] } : schema,
    ]),
  ) as T;
}

const owner = { created_by: uuid };

export const CreateTask = Type.Composite(
  [
    closed({ title, description, schedule_kind, payload, ...owner }),
    Type.Partial(closed(withDeclaredDefaults(optionalTaskFields))),
  ],
  { title: 'CreateTask', additionalProperties: false },
);
export type CreateTask = Static<typeof CreateTask>;

export const UpdateTask = Type.Partial(closed({ ...givenFields, ...owner }), {
  title: 'UpdateTask',
});
export type UpdateTask = Static<typeof UpdateTask>;

export const CheckTask = Type.Partial(closed({ task_id: uuid, ...givenFields, ...owner }), {
  title: 'CheckTask',
});
export type CheckTask = Static<typeof CheckTask>;

export const TaskQuery = Type.Object({
  ...pageParameters,
  view,
  status: Type.Optional(OneOf(taskStatuses)),
  created_by: Type.Optional(uuid),
  schedule_kind: Type.Optional(OneOf(scheduleKinds)),
  tag: Type.Optional(Type.String({ maxLength: 100 })),
  secret: Type.Optional(Type.String({ pattern: SECRET_NAME_PATTERN })),
  search: Type.Optional(Type.String({ maxLength: 200 })),
  sort: Type.Unsafe<TaskOrder>({ type: 'string', enum: [...taskOrders], default: 'created' }),
});
export type TaskQuery = Static<typeof TaskQuery>;

export const ResumeQuery = Type.Object({
  missed: Type.Unsafe<(typeof misfirePolicies)[number]>({
    type: 'string',
    enum: [...misfirePolicies],
    default: 'skip',
  }),
});
export type ResumeQuery = Static<typeof ResumeQuery>;

/** The same choices as for resuming a paused task. */
export const EnableQuery = ResumeQuery;
export type EnableQuery = Static<typeof EnableQuery>;

export const RunNowQuery = Type.Object({
  wait: Type.Optional(Type.Number({ minimum: 0, maximum: 60 })),
});
export type RunNowQuery = Static<typeof RunNowQuery>;

/** Replace the task's default params, key by key. */
export const givenParams = Type.Record(Type.String(), Type.Unknown(), {
  description: 'replaces default params of the task, key by key; at most 64 KiB of JSON',
});

export const RunNow = Type.Partial(closed({ params: givenParams }));
export type RunNow = Static<typeof RunNow>;

export const SnoozeTask = closed({
  delay_seconds: Type.Integer({ minimum: 1, maximum: 604_800 }),
  reason: Type.Optional(Type.String({ maxLength: 500 })),
});
export type SnoozeTask = Static<typeof SnoozeTask>;

const timestamp = Type.String({ maxLength: 64 });

/** The parameters of a search for runs. */
export const runSearch = {
  id: Type.String({
    pattern: '^[0-9A-Fa-f][0-9A-Fa-f-]{3,35}$',
    description: 'the beginning of an id, 4 to 36 of 0-9 a-f -',
  }),
  error: Type.String({ minLength: 1, maxLength: 500 }),
  error_group: Type.String({ pattern: '^[0-9a-f]{16}$', description: '16 of 0-9 a-f' }),
  input: Type.String({ minLength: 1, maxLength: 500 }),
  event_id: uuid,
};

export const RunQuery = Type.Object({
  ...pageParameters,
  view,
  id: Type.Optional(runSearch.id),
  error: Type.Optional(runSearch.error),
  error_group: Type.Optional(runSearch.error_group),
  input: Type.Optional(runSearch.input),
  event_id: Type.Optional(runSearch.event_id),
  task_id: Type.Optional(uuid),
  parent_run_id: Type.Optional(uuid),
  success: Type.Optional(Type.Boolean()),
  state: Type.Optional(OneOf(runStates)),
  trigger: Type.Optional(OneOf(runTriggers)),
  until: Type.Optional(Type.String({ ...timestamp, description: 'queued before this instant' })),
  start_time: Type.Optional(timestamp),
  end_time: Type.Optional(timestamp),
  include_errors: Type.Boolean({ default: false }),
});
export type RunQuery = Static<typeof RunQuery>;

/** Query of the explanation of a run. */
export const RunExplainQuery = Type.Object({
  after: pageParameters.after,
  step: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      description: 'a step, or `<step>[<index>]`, whose input is shown too',
    }),
  ),
});
export type RunExplainQuery = Static<typeof RunExplainQuery>;

/** Query for reads of a single record. */
export const ReadQuery = Type.Object({ after: pageParameters.after });

const topic = Type.String({
  pattern: '^[A-Za-z0-9_.:/-]{1,200}$',
  description: '1 to 200 of A-Z a-z 0-9 _ . : / -',
});

export const PublishEvent = Type.Object(
  {
    topic,
    payload: AnyObject,
    source_agent_id: uuid,
  },
  { title: 'PublishEvent', additionalProperties: false },
);
export type PublishEvent = Static<typeof PublishEvent>;

/** The default is the maximum, so that a few topics fit one page. */
export const TopicsQuery = Type.Object({
  ...pageParameters,
  limit: Type.Integer({ minimum: 1, maximum: 200, default: 200 }),
  matching: Type.Optional(topic),
});
export type TopicsQuery = Static<typeof TopicsQuery>;

export const RecentQuery = Type.Object({
  ...ReadQuery.properties,
  namespace: pageParameters.namespace,
  count: Type.Integer({ minimum: 1, maximum: KEPT_OF_A_TOPIC, default: 50 }),
  topic: Type.Optional(topic),
});
export type RecentQuery = Static<typeof RecentQuery>;

export const EventQuery = Type.Object({
  limit: Type.Integer({ minimum: 1, maximum: 200, default: 50 }),
  cursor: pageParameters.cursor,
  after: pageParameters.after,
  namespace: pageParameters.namespace,
  topic: Type.Optional(topic),
});
export type EventQuery = Static<typeof EventQuery>;

export const CleanupQuery = Type.Object({
  ...ReadQuery.properties,
  namespace: pageParameters.namespace,
  max_age_hours: Type.Number({ exclusiveMinimum: 0, maximum: 1_000_000, default: 24 }),
});
export type CleanupQuery = Static<typeof CleanupQuery>;
