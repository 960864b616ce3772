import logging

logging.info("not shown")
logging.warning("shown")
