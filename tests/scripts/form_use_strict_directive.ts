'use strict'; this === undefined || typeof this
