import { configure } from '@testing-library/dom'

// A busy machine may take long to draw a page; what never comes fails all the same.
configure({ asyncUtilTimeout: 15_000 })
