import type { Examples } from '../examples.ts';
import { due } from './values.ts';

const version = '1.0.0';
const checks = [
  { name: 'database', status: 'healthy', message: 'views can be read' },
  { name: 'stream_store', status: 'healthy', message: 'the log can be written' },
];
const unhealthy = {
  name: 'database',
  status: 'unhealthy',
  message: 'the read model is unavailable',
};
const resource = (path: string) => ({
  responses: {
    200: {
      resource: `https://tasks.example${path}`,
      authorization_servers: ['https://tasks.example'],
      resource_name: 'Task scheduling service',
      resource_documentation: 'https://tasks.example/docs',
      bearer_methods_supported: ['header'],
      scopes_supported: ['tasks:read', 'tasks:write', 'runs:read'],
    },
  },
});

export const serviceExamples: Readonly<Record<string, Examples>> = {
  getHealth: {
    responses: {
      200: { status: 'healthy', timestamp: due, version, checks },
      503: { status: 'unhealthy', timestamp: due, version, checks: [unhealthy] },
    },
  },
  getReadiness: {
    responses: {
      200: { status: 'ready', checks },
      503: { status: 'not_ready', checks: [unhealthy] },
    },
  },
  getLiveness: {
    responses: {
      200: {
        status: 'alive',
        timestamp: due,
        version,
        instance: '1f0c4a52-5d0e-4b8e-9a5e-0a4a3f6f2f0b',
      },
    },
  },
  getMetrics: {
    responses: {
      200: '# HELP task_executions_total Runs that have ended\n# TYPE task_executions_total counter\ntask_executions_total{status="succeeded"} 19\n',
    },
  },
  getResourceMetadata: resource(''),
  getMcpResourceMetadata: resource('/ext/mcp_http/mcp'),
  getAuthorizationServerMetadata: {
    responses: {
      200: {
        issuer: 'https://tasks.example',
        authorization_endpoint: 'https://tasks.example/oauth/authorize',
        token_endpoint: 'https://tasks.example/oauth/token',
        scopes_supported: ['tasks:read', 'tasks:write', 'runs:read'],
        response_types_supported: [],
        grant_types_supported: ['client_credentials', 'refresh_token'],
        token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
        service_documentation: 'https://tasks.example/docs',
      },
    },
  },
  getOpenApi: { responses: { 200: { openapi: '3.1.0', paths: {} } } },
  getDocs: { responses: { 200: '<!doctype html><title>Task scheduling service</title>' } },
  getExtensionStatus: {
    responses: {
      200: {
        extensions: {
          webui: {
            state: 'loaded',
            info: {
              id: 'webui',
              name: 'Web page',
              version,
              description: 'A page for people',
              source: 'builtin',
            },
            capabilities: ['ROUTES', 'STATIC'],
            loaded_ms: 12.5,
            metrics: { requests_total: 40, errors_total: 0, latency_ms_sum: 310 },
          },
        },
        discovery_sources: ['builtin'],
        total_extensions: 1,
        loaded_extensions: 1,
        failed_extensions: 0,
      },
    },
  },
  getExtensionHealth: {
    responses: {
      200: { status: 'healthy', timestamp: due, version, checks: { setup: 'healthy' } },
    },
  },
};
