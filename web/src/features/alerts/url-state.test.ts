import { expect, test } from 'vitest'

import { parseView, projectOf } from './url-state'

test('the address says which project, else it is the first that one sees', () => {
  expect(projectOf(parseView({ project: 'hearts' }), ['default', 'hearts'])).toBe('hearts')
  expect(projectOf(parseView({}), ['default', 'hearts'])).toBe('default')
  expect(projectOf(parseView({ project: '' }), [])).toBeUndefined()
})
