import { Type } from '@sinclair/typebox';
import { textOf } from '../schemas/answer-schemas.ts';
import { OAuthRefusal } from '../schemas/answer-schemas-agents.ts';
import { HealthReport, Liveness, Readiness } from '../schemas/answer-schemas-health.ts';
import type { DescribedEndpoint } from './endpoint-outcomes.ts';

/** RFC 9728, section 2: what clients read of a resource that wants a token. */
const ProtectedResource = Type.Object(
  {
    resource: Type.String({ format: 'uri' }),
    authorization_servers: Type.Array(Type.String({ format: 'uri' }), { minItems: 1 }),
    resource_name: Type.String(),
    resource_documentation: Type.String({ format: 'uri' }),
    bearer_methods_supported: Type.Array(Type.Literal('header')),
    scopes_supported: Type.Array(Type.String()),
  },
  { title: 'ProtectedResource', additionalProperties: false },
);

/** RFC 8414, section 2: what clients read of the server that issues the tokens. */
const AuthorizationServer = Type.Object(
  {
    issuer: Type.String({ format: 'uri' }),
    authorization_endpoint: Type.String({ format: 'uri' }),
    token_endpoint: Type.String({ format: 'uri' }),
    scopes_supported: Type.Array(Type.String()),
    response_types_supported: Type.Array(Type.String()),
    grant_types_supported: Type.Array(Type.String()),
    token_endpoint_auth_methods_supported: Type.Array(Type.String()),
    service_documentation: Type.String({ format: 'uri' }),
  },
  { title: 'AuthorizationServer', additionalProperties: false },
);

const open = { method: 'get', scopes: null } as const;

/** What is served beside the endpoints and asks for no token; described as they are. */
export const unlistedEndpoints: readonly DescribedEndpoint[] = [
  {
    ...open,
    paths: ['/health'],
    operationId: 'getHealth',
    summary: 'How the service and its parts are',
    answers: { 200: HealthReport, 503: HealthReport },
  },
  {
    ...open,
    paths: ['/health/ready'],
    operationId: 'getReadiness',
    summary: 'Whether traffic may come',
    answers: { 200: Readiness, 503: Readiness },
  },
  {
    ...open,
    paths: ['/health/live'],
    operationId: 'getLiveness',
    summary: 'That the process answers',
    answers: { 200: Liveness },
  },
  {
    ...open,
    paths: ['/ext/observability/metrics'],
    operationId: 'getMetrics',
    summary: 'Metrics, as Prometheus reads them',
    answers: { 200: textOf('text/plain') },
  },
  {
    ...open,
    paths: ['/.well-known/oauth-protected-resource'],
    operationId: 'getResourceMetadata',
    summary: 'How clients authenticate (RFC 9728)',
    answers: { 200: ProtectedResource },
  },
  {
    ...open,
    paths: ['/.well-known/oauth-protected-resource/ext/mcp_http/mcp'],
    operationId: 'getMcpResourceMetadata',
    summary: 'How clients of the Model Context Protocol authenticate (RFC 9728)',
    answers: { 200: ProtectedResource },
  },
  {
    ...open,
    paths: ['/.well-known/oauth-authorization-server'],
    operationId: 'getAuthorizationServerMetadata',
    summary: 'Where OAuth clients get their tokens (RFC 8414)',
    answers: { 200: AuthorizationServer },
  },
  {
    ...open,
    paths: ['/oauth/authorize'],
    operationId: 'authorize',
    summary: 'Refuses: nobody logs in',
    answers: { 400: OAuthRefusal },
  },
  {
    ...open,
    paths: ['/openapi.json'],
    operationId: 'getOpenApi',
    summary: 'This description',
    answers: { 200: Type.Object({ openapi: Type.String(), paths: Type.Object({}) }) },
  },
  {
    ...open,
    paths: ['/docs'],
    operationId: 'getDocs',
    summary: 'This description as a page',
    answers: { 200: textOf('text/html') },
  },
];
