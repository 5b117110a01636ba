import { expect, test } from 'vitest'

import { parseAlertsUrl, projectOf } from './url-state'

test('the project is the URL’s, else the first visible one', () => {
  expect(projectOf(parseAlertsUrl({ project: 'hearts' }), ['default', 'hearts'])).toBe('hearts')
  expect(projectOf(parseAlertsUrl({}), ['default', 'hearts'])).toBe('default')
  expect(projectOf(parseAlertsUrl({ project: '' }), [])).toBeUndefined()
})
