// @vitest-environment jsdom
import { expect, test } from 'vitest'

import { ApiProblem } from '@/api/problem'
import type { ListedExperiment } from '@/api/types'

import { runForAll, togetherProblem } from './bulk-actions'

test('a failure for some does not stop the others and is reported for each', async () => {
  const all = ['a', 'b', 'c', 'd', 'e', 'f'].map((id) => ({ id, name: `run ${id}` })) as ListedExperiment[]
  const done: string[] = []
  const [first, ...others] = await runForAll(all, ({ id }) => {
    const problem = new ApiProblem({ code: 'experiment.conflict', title: 'Not now', detail: `${id} goes on` }, 409)
    if ('bf'.includes(id)) return Promise.reject(problem)
    done.push(id)
    return Promise.resolve()
  })
  expect(done.sort()).toEqual(['a', 'c', 'd', 'e'])
  if (first === undefined) throw new Error('nothing failed')
  expect(togetherProblem([first, ...others], all.length)).toMatchObject({
    code: 'experiment.conflict',
    title: 'Failed for 2 of 6',
    errors: [
      { field: 'run b', message: 'b goes on' },
      { field: 'run f', message: 'f goes on' },
    ],
  })
})
