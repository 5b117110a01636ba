import { expect, test } from 'vitest'

import { NOTHING, paint } from './draw'

test('each cell is a pixel of its colour, missing cells are transparent', () => {
  const pixels = new Uint8ClampedArray(4 * 4)
  const places = Uint8Array.of(0, 1, NOTHING, 1)
  paint(
    {
      rows: 2,
      columns: 2,
      places,
      colours: [
        [1, 2, 3],
        [250, 251, 252],
      ],
      signs: [],
    },
    pixels,
  )
  expect([...pixels]).toEqual([1, 2, 3, 255, 250, 251, 252, 255, 0, 0, 0, 0, 250, 251, 252, 255])
})
