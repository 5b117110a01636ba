import { expect, test } from 'vitest'

import { ApiProblem, problemOf, toProblem } from './problem'

test('reads a problem document', () => {
  const problem = problemOf(
    {
      code: 'spec.invalid',
      title: 'The experiment specification is not valid',
      detail: 'rounds = 0: must be at least 1',
      request_id: 'req_1',
      errors: [{ field: 'rounds', value: 0, message: 'must be at least 1' }, 'no field error'],
    },
    422,
  )
  expect(problem).toMatchObject({ code: 'spec.invalid', status: 422, requestId: 'req_1' })
  expect(problem.errors.map(({ field }) => field)).toEqual(['rounds'])
})

test.each(['<html>Bad gateway</html>', undefined, null])('makes a problem of any body: %j', (body) => {
  expect(problemOf(body, 502)).toMatchObject({ code: 'internal', title: 'The server answered 502', errors: [] })
})

test('a failed fetch is an unreachable server, a problem stays itself', () => {
  const problem = new ApiProblem({ code: 'auth.missing' }, 401)
  expect(toProblem(problem)).toBe(problem)
  const unreachable = toProblem(new TypeError('Failed to fetch'))
  expect(unreachable).toMatchObject({ code: 'server.unreachable', title: 'The server cannot be reached', status: 0 })
  expect(unreachable.detail).not.toContain('Failed to fetch')
})
