import { Type, type Static } from '@sinclair/typebox';
import { Nullable, OneOf } from '../../domain/events/schema-parts.ts';
import { disabledRuns } from '../../domain/vocabulary.ts';
import { oauthErrorCodes } from '../errors.ts';
import { agentName, done, id, time, namespace } from './response-schemas.ts';

/** Responses about agents and tokens. */

export const Agent = Type.Object(
  {
    id,
    namespace,
    name: Type.String({ minLength: 1, maxLength: 100 }),
    scopes: Type.Array(Type.String()),
    webhook_url: Nullable(Type.String()),
    disabled: Nullable(
      Type.Object(
        { runs: OneOf(disabledRuns), by: id, since: time },
        { additionalProperties: false },
      ),
    ),
    created_at: time,
    updated_at: time,
  },
  { title: 'Agent', additionalProperties: false },
);
export type Agent = Static<typeof Agent>;

export const AgentList = Type.Array(Agent, { title: 'AgentList' });
export type AgentList = Static<typeof AgentList>;

export const AgentRemoved = done({ agent_id: id });
export type AgentRemoved = Static<typeof AgentRemoved>;

export const Credentials = Type.Object(
  { agent_id: id, agent_secret: Type.String({ minLength: 16 }), message: Type.String() },
  { title: 'Credentials', additionalProperties: false },
);
export type Credentials = Static<typeof Credentials>;

/** An API key without the key itself. */
export const ApiKey = Type.Object(
  {
    id,
    agent_id: id,
    name: Type.String({ minLength: 1, maxLength: 100 }),
    scopes: Type.Array(Type.String()),
    created_at: time,
    created_by: id,
    created_by_name: agentName,
    expires_at: Nullable(time),
    last_used_at: Nullable(time),
  },
  { title: 'ApiKey', additionalProperties: false },
);
export type ApiKey = Static<typeof ApiKey>;

export const ApiKeyList = Type.Object(
  { items: Type.Array(ApiKey) },
  { title: 'ApiKeyList', additionalProperties: false },
);
export type ApiKeyList = Static<typeof ApiKeyList>;

/** The only response that contains the key. */
export const NewApiKey = Type.Object(
  { ...ApiKey.properties, key: Type.String({ minLength: 1 }), message: Type.String() },
  { title: 'NewApiKey', additionalProperties: false },
);
export type NewApiKey = Static<typeof NewApiKey>;

export const ApiKeyRevoked = done({ agent_id: id, key_id: id });
export type ApiKeyRevoked = Static<typeof ApiKeyRevoked>;

export const Tokens = Type.Object(
  {
    access_token: Type.String({ minLength: 1 }),
    refresh_token: Type.String({ minLength: 1 }),
    token_type: Type.Literal('bearer'),
    expires_in: Type.Integer({ minimum: 1, description: 'seconds' }),
    scope: Type.String({ description: "the agent's scopes, separated by spaces" }),
  },
  { title: 'Tokens', additionalProperties: false },
);
export type Tokens = Static<typeof Tokens>;

export const PageSession = Type.Object(
  {
    agent: Nullable(
      Type.Object(
        {
          id,
          namespace: Type.String(),
          name: Type.String({ minLength: 1, maxLength: 100 }),
          scopes: Type.Array(Type.String()),
        },
        { additionalProperties: false, description: 'who is signed in; null for nobody' },
      ),
    ),
    expires_at: Nullable(time),
    openid_connect: Type.Boolean({
      description: 'people can sign in at an identity provider, from `GET /auth/oidc/login`',
    }),
  },
  { title: 'PageSession', additionalProperties: false },
);
export type PageSession = Static<typeof PageSession>;

/** RFC 6749, section 5.2. */
export const OAuthRefusal = Type.Object(
  {
    error: Type.Unsafe<(typeof oauthErrorCodes)[number]>({
      ...OneOf(oauthErrorCodes),
      description: 'code of the error',
    }),
    error_description: Type.String({ description: 'what is wrong' }),
  },
  { title: 'OAuthRefusal', additionalProperties: false },
);
export type OAuthRefusal = Static<typeof OAuthRefusal>;

export const Revoked = done({});
export type Revoked = Static<typeof Revoked>;
