import { expect } from 'chai';
import { Routes } from '../../../api/serving/routes.ts';

describe('the routes of the interface', () => {
  const routes = new Routes<string>();
  routes.add('GET', '/runs', 'list');
  routes.add('GET', '/runs/live', 'live');
  routes.add('POST', '/runs/redrive', 'redrive');
  routes.add('GET', '/runs/:run_id', 'one');
  routes.add('GET', '/task/:task_id/latest', 'latest');
  routes.add('PUT', '/runs', 'change');

  const found = (method: string, path: string): unknown => {
    const route = routes.find(method, path);
    return route?.target === null ? route.methods : (route?.target ?? null);
  };

  it('find a target by method and path', () => {
    expect(found('GET', '/runs')).to.equal('list');
    expect(found('PUT', '/runs')).to.equal('change');
    expect(found('GET', '/runs/live')).to.equal('live');
    expect(found('GET', '/task/7/latest')).to.equal('latest');
  });

  it('return the parameters as they were sent', () => {
    const route = routes.find('GET', '/runs/a%20b');
    expect(route).to.deep.equal({ target: 'one', parameters: { run_id: 'a%20b' } });
  });

  it('try later patterns for a method that the first lacks', () => {
    expect(found('GET', '/runs/redrive')).to.equal('one');
    expect(found('POST', '/runs/redrive')).to.equal('redrive');
  });

  it('return the methods of a path that exists with others', () => {
    expect(found('DELETE', '/runs')).to.deep.equal(['GET', 'PUT']);
    expect(found('POST', '/runs/live')).to.deep.equal(['GET']);
  });

  it('treat HEAD as GET, and ignore a trailing slash', () => {
    expect(found('HEAD', '/runs/live')).to.equal('live');
    expect(found('GET', '/runs/')).to.equal('list');
  });

  it('find no other path', () => {
    for (const path of ['/', '/Runs', '/runs//', '/runs/a/b', '/task//latest', 'runs', '*', '']) {
      expect(found('GET', path), path).to.equal(null);
    }
  });
});
