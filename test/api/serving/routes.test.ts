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

  const led = (method: string, path: string): unknown => {
    const found = routes.find(method, path);
    return found?.taker === null ? found.methods : (found?.taker ?? null);
  };

  it('take a request by its method and path', () => {
    expect(led('GET', '/runs')).to.equal('list');
    expect(led('PUT', '/runs')).to.equal('change');
    expect(led('GET', '/runs/live')).to.equal('live');
    expect(led('GET', '/task/7/latest')).to.equal('latest');
  });

  it('give the parameters as they were sent', () => {
    const found = routes.find('GET', '/runs/a%20b');
    expect(found).to.deep.equal({ taker: 'one', parameters: { run_id: 'a%20b' } });
  });

  it('go on to a pattern further down for a method that the first has not', () => {
    expect(led('GET', '/runs/redrive')).to.equal('one');
    expect(led('POST', '/runs/redrive')).to.equal('redrive');
  });

  it('tell the methods of a path that is there with others', () => {
    expect(led('DELETE', '/runs')).to.deep.equal(['GET', 'PUT']);
    expect(led('POST', '/runs/live')).to.deep.equal(['GET']);
  });

  it('answer HEAD as GET, and take a slash at the end', () => {
    expect(led('HEAD', '/runs/live')).to.equal('live');
    expect(led('GET', '/runs/')).to.equal('list');
  });

  it('know no other path', () => {
    for (const path of ['/', '/Runs', '/runs//', '/runs/a/b', '/task//latest', 'runs', '*', '']) {
      expect(led('GET', path), path).to.equal(null);
    }
  });
});
