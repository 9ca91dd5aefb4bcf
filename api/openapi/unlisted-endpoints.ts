import { Type } from '@sinclair/typebox';
import { textOf } from '../schemas/response-schemas.ts';
import { OAuthRefusal } from '../schemas/response-schemas-agents.ts';
import { HealthReport, Liveness, Readiness } from '../schemas/response-schemas-health.ts';
import type { DescribedEndpoint } from './endpoint-outcomes.ts';

/** Metadata of a protected resource (RFC 9728, section 2). */
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

/** Metadata of the authorization server (RFC 8414, section 2). */
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

/** Routes outside the endpoints, which need no token. */
export const unlistedEndpoints: readonly DescribedEndpoint[] = [
  {
    ...open,
    paths: ['/health'],
    operationId: 'getHealth',
    summary: 'Health of the service and its parts',
    responses: { 200: HealthReport, 503: HealthReport },
  },
  {
    ...open,
    paths: ['/health/ready'],
    operationId: 'getReadiness',
    summary: 'Whether the process is ready for traffic',
    responses: { 200: Readiness, 503: Readiness },
  },
  {
    ...open,
    paths: ['/health/live'],
    operationId: 'getLiveness',
    summary: 'Whether the process is responding',
    responses: { 200: Liveness },
  },
  {
    ...open,
    paths: ['/ext/observability/metrics'],
    operationId: 'getMetrics',
    summary: 'Metrics in the Prometheus format',
    responses: { 200: textOf('text/plain') },
  },
  {
    ...open,
    paths: ['/.well-known/oauth-protected-resource'],
    operationId: 'getResourceMetadata',
    summary: 'How clients authenticate (RFC 9728)',
    responses: { 200: ProtectedResource },
  },
  {
    ...open,
    paths: ['/.well-known/oauth-protected-resource/ext/mcp_http/mcp'],
    operationId: 'getMcpResourceMetadata',
    summary: 'How clients of the Model Context Protocol authenticate (RFC 9728)',
    responses: { 200: ProtectedResource },
  },
  {
    ...open,
    paths: ['/.well-known/oauth-authorization-server'],
    operationId: 'getAuthorizationServerMetadata',
    summary: 'Where OAuth clients get their tokens (RFC 8414)',
    responses: { 200: AuthorizationServer },
  },
  {
    ...open,
    paths: ['/oauth/authorize'],
    operationId: 'authorize',
    summary: 'Rejects every request: the service has no login',
    responses: { 400: OAuthRefusal },
  },
  {
    ...open,
    paths: ['/openapi.json'],
    operationId: 'getOpenApi',
    summary: 'This description',
    responses: { 200: Type.Object({ openapi: Type.String(), paths: Type.Object({}) }) },
  },
  {
    ...open,
    paths: ['/docs'],
    operationId: 'getDocs',
    summary: 'This description as a web page',
    responses: { 200: textOf('text/html') },
  },
];
