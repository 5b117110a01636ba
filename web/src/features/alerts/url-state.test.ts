import { expect, test } from 'vitest'

import { parseAlertsUrl, projectOf } from './url-state'

test('the address says which project, else it is the first that one sees', () => {
  expect(projectOf(parseAlertsUrl({ project: 'hearts' }), ['default', 'hearts'])).toBe('hearts')
  expect(projectOf(parseAlertsUrl({}), ['default', 'hearts'])).toBe('default')
  expect(projectOf(parseAlertsUrl({ project: '' }), [])).toBeUndefined()
})
