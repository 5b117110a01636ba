import { expect, test } from 'vitest'

import { overlayTable } from './overlay-table'

test('rows are rounds, whatever the chart’s axis; a group has a column more', () => {
  const { names, data } = overlayTable([
    { label: 'a', curve: [{ round: 1, x: 900, value: 3 }] },
    {
      label: 'b (2 seeds)',
      curve: [
        { round: 0, x: 0, value: 4, sd: 0 },
        { round: 1, x: 70, value: 2, sd: 0.5 },
      ],
    },
  ])
  expect(names).toEqual(['a', 'b (2 seeds)', 'b (2 seeds), sd'])
  expect(data.rounds).toEqual([0, 1])
  expect(data.lines).toEqual([
    [undefined, 3],
    [4, 2],
    [0, 0.5],
  ])
})
